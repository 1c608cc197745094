"""Analysis: how certain scores are, what each client is paid, the model's health."""
