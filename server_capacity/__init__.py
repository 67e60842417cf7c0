"""The server's deeds and capacity: its metrics over the wave window, and the capacity decisions they allow."""
