"""The load to offer: the plan, its schedule of arrivals, its limits. Pure.

``plan`` is all that a wave is asked for, ``load`` its kinds of load and of arrivals, ``problems`` what may be wrong
with them. ``schedule`` has the rate over time, ``stripe`` the instants of one worker's arrivals, ``pacing`` of all.
"""
