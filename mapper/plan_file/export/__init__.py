"""A plan in the languages of other launchers: a module for each family of them, and the table of all."""

from .table import FORMS as FORMS, export_plan as export_plan
