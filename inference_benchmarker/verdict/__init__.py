"""The meaning of the numbers: findings, who was the limit, VALID or INVALID. Pure.

``finding`` has the closed list of codes. A function yields each finding: on who was the limit, client or endpoint, in
``client``, on the wave itself in ``wave_findings``, on one subject in the module that is called by it; ``judge`` in
``verdict`` asks all of them. ``server`` has no findings: its remarks explain the server's metrics, and judge nothing.
"""
