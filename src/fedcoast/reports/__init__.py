"""From an assessment to something to show: how sure it is, what each should get, a report, a live page."""
