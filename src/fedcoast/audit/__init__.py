"""Audit: whether a run folder is still what was recorded, and whether answers and reports follow from it."""

from fedcoast.audit.findings import Finding
from fedcoast.audit.verification import Verification, verify

__all__ = ["Finding", "Verification", "verify"]
