"""The server's metrics and capacity: its metrics over the wave's window, and the capacity decisions they allow."""
