#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""containers.py BUILD_DIR: the commands of contrib/containers, with their capabilities, users and mounts, in namespaces that stand in
for containers: a network and a mount namespace each, and no other capability."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import yaml

build = os.path.abspath(sys.argv[1])
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "containers")
tmp = tempfile.mkdtemp(prefix="uroce-containers-")
names = {}
running = []
# What the image has installed.
PROGRAMS = {"uroced": f"{build}/app/uroced/uroced", "uroce-run": f"{build}/app/run/uroce-run"}


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def network(*containers):
    """A bridge's stand-in: two containers, joined by a veth pair, eth0 in both."""
    for c in containers:
        names[c] = f"uroce-c-{c}-{os.getpid()}"
        ip("netns", "add", names[c])
        ip("-n", names[c], "link", "set", "lo", "up")
    if len(containers) < 2:
        return
    a, b = (names[c] for c in containers)
    ip("link", "add", "eth0", "netns", a, "type", "veth", "peer", "name", "eth0", "netns", b)
    for host, n in enumerate((a, b), 2):
        ip("-n", n, "address", "add", f"10.78.0.{host}/24", "dev", "eth0")
        ip("-n", n, "link", "set", "eth0", "up")


def end_network():
    for n in names.values():
        subprocess.run(["ip", "netns", "del", n], check=False, stderr=subprocess.DEVNULL)
    names.clear()


# $1: the volume, or nothing; $2: names; what follows is the command. /run and /tmp are the container's own.
SET_UP = """
mount -t tmpfs none /run && mount --bind "$2" /etc/hosts || exit 99
[ -z "$1" ] || { mkdir /run/uroced && mount --bind "$1" /run/uroced; } || exit 99
mount -t tmpfs none /tmp || exit 99
shift 2
exec "$@"
"""


def container(name, command, keep=(), volume="", uid=0, gid=0, netns=None):
    """Starts a command as a container would. `keep`: its capabilities."""
    with open(f"{tmp}/hosts", "w", encoding="ascii") as f:
        f.write("127.0.0.1 localhost\n10.78.0.2 server\n")
    caps = ",".join(["-all", *(f"+{c.lower()}" for c in keep)])
    log = open(f"{tmp}/{name}.log", "a", encoding="utf-8")
    p = subprocess.Popen(["ip", "netns", "exec", names[netns or name], "unshare", "--mount", "--propagation", "private", "sh", "-c", SET_UP, "sh",
                          volume, f"{tmp}/hosts", "setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", f"--inh-caps={caps}",
                          f"--bounding-set={caps}", "--no-new-privs", PROGRAMS[command[0]], *command[1:]],
                         stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
                         env={**os.environ, "UROCE_VERBS_LIBRARY_DIR": f"{build}/lib/verbs", "UROCE_SET": "eal.memory_mb=64;eal.hugepages=no", "HOME": "/"})
    running.append(p)
    return p


def logs():
    return "".join(f"-- {f}\n{open(f'{tmp}/{f}', encoding='utf-8', errors='replace').read()[-2500:]}" for f in sorted(os.listdir(tmp))
                   if f.endswith(".log"))


def wait_for(what, condition, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"{what}: not in {seconds} s\n" + logs())
        time.sleep(0.05)


def run_pair(what, server, client):
    """Both, restarted on failure as their files say, until both have succeeded."""
    s, c = server(), None
    until = time.monotonic() + 240
    done = {}
    time.sleep(0.5)
    while len(done) < 2:
        if time.monotonic() > until:
            sys.exit(f"{what}: not in 240 s\n" + logs())
        if "s" not in done and s.poll() is not None:
            if s.returncode == 0:
                done["s"] = True
            else:
                s = server()
        if "c" not in done and (c is None or c.poll() is not None):
            if c is not None and c.returncode == 0:
                done["c"] = True
            else:
                c = client()
        time.sleep(0.2)
    print(f"{what}: two containers ran ib_write_bw")


def stop(p):
    if p.poll() is None:
        os.killpg(p.pid, signal.SIGKILL)
    p.wait()


def compose(file, what):
    with open(f"{here}/{file}", encoding="utf-8") as f:
        services = yaml.safe_load(f)["services"]
    for s in services.values():
        assert s["cap_drop"] == ["ALL"] and "privileged" not in s and "devices" not in s
    network("server", "client")
    volume = tempfile.mkdtemp(dir=tmp) if any("volumes" in s for s in services.values()) else ""

    def of(name, netns=None):
        s = services[name]
        return lambda: container(name, s["command"], s.get("cap_add", []), volume if "volumes" in s else "", netns=netns)

    daemon = None
    if "uroced" in services:
        assert services["uroced"]["network_mode"] == "none"
        names["uroced"] = f"uroce-c-uroced-{os.getpid()}"
        ip("netns", "add", names["uroced"])
        daemon = of("uroced")()
        wait_for("uroced", lambda: os.path.exists(f"{volume}/uroced.sock"))
    run_pair(what, of("server"), of("client"))
    if daemon:
        stop(daemon)
    end_network()


def kubernetes():
    with open(f"{here}/kubernetes.yaml", encoding="utf-8") as f:
        daemon_set, pod = yaml.safe_load_all(f)
    volume = tempfile.mkdtemp(dir=tmp)
    os.chmod(tmp, 0o755)
    os.chmod(volume, 0o755)

    def of(c, netns):
        s = c["securityContext"]
        assert s["capabilities"] == {"drop": ["ALL"]} and not s["allowPrivilegeEscalation"]
        assert c["volumeMounts"] == [{"name": "uroced", "mountPath": "/run/uroced"}]
        return lambda: container(c["name"], c["command"], (), volume, s["runAsUser"], s["runAsGroup"], netns)

    network("node")
    names["pod"] = names["node"]  # each has its own; lo is all that they use of it
    d = of(daemon_set["spec"]["template"]["spec"]["containers"][0], "node")()
    wait_for("uroced", lambda: os.path.exists(f"{volume}/uroced.sock"))
    server, client = (of(c, "pod") for c in pod["spec"]["containers"])
    assert pod["spec"]["containers"][0]["securityContext"]["runAsUser"] != 0
    run_pair("kubernetes.yaml", server, client)
    stop(d)


def main():
    if os.getuid() != 0:
        print("skipped: needs root, for namespaces")
        sys.exit(77)
    compose("compose.yaml", "compose.yaml")
    compose("compose-uroced.yaml", "compose-uroced.yaml")
    kubernetes()


try:
    main()
except AssertionError:
    print(logs())
    raise
finally:
    for process in running:
        stop(process)
    end_network()
    shutil.rmtree(tmp, ignore_errors=True)
