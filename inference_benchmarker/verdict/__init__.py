"""The meaning of the numbers: findings, who was the limit, VALID or INVALID. Pure.

``finding`` has the closed list of codes. A function yields each finding: on the client in ``client``, on the server in
``server``, on the wave itself in ``wave_findings``; ``verdict`` asks all of them.
"""
