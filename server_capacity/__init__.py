"""What the server did and can do: its metrics over the wave window, and the capacity decisions they allow."""
