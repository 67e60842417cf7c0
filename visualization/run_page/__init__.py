"""The page of a single run: a report of it for a browser, in one file that needs no network.

``figures`` are values with every number, ``drawing`` makes pictures of them, ``page`` puts all together.
"""

from visualization.run_page.page import run_page

__all__ = ["run_page"]
