"""What people see: tables for terminals and notebooks, warnings, and the progress of long jobs.

None of it needs another library; `progress` uses rich where that is installed.
"""

from penstock.display.overview import html_overview, text_overview
from penstock.display.tables import html_table, text_table

__all__ = [
    "html_overview",
    "html_table",
    "text_overview",
    "text_table",
]
