"""``python -m server_capacity.provisioning``: the keeper's process, which a command starts and holds by a pipe."""

from server_capacity.provisioning.keeper_process import keep

if __name__ == "__main__":
    raise SystemExit(keep())
