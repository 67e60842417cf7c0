"""The spool of a wave: what its primary wrote down, followed while it runs, and put together when it is over."""
