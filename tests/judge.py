"""Judges exports by the programs of others: gzip, warcio, cdxj-indexer, py-wacz and pywb.

judge.py NENRIN ARCHIVE FOLDER RESPONSES REVISITS
FOLDER holds export.warc.gz, export.warc.gz.cdxj and export.wacz. Run by the Python of the
environment that `scripts/test` installs.
"""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time

from warcio.archiveiterator import ArchiveIterator

SAMPLE = 200
BIN = os.path.dirname(os.path.abspath(sys.executable))


def tool(name, *args, **options):
    command = [os.path.join(BIN, name), *args]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, **options)
    assert run.returncode == 0, f"{command}: {run.returncode}\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
    return run.stdout


def index_lines(text):
    lines = []
    for line in text.splitlines():
        key, date, rest = line.split(" ", 2)
        fields = json.loads(rest)
        names = ("url", "offset", "length", "filename", "digest", "mime", "status")
        lines.append((key, date, *(fields.get(name) for name in names)))
    return lines


def judge_records(warc, responses, revisits):
    subprocess.run(["gzip", "-t", warc], check=True)
    checked = tool("warcio", "check", "-v", warc)
    assert "no digest" not in checked, checked[-2000:]
    counts = {}
    with open(warc, "rb") as file:
        for record in ArchiveIterator(file):
            counts[record.rec_type] = counts.get(record.rec_type, 0) + 1
            if record.rec_type == "revisit":
                for name in ("WARC-Refers-To-Target-URI", "WARC-Refers-To-Date"):
                    assert record.rec_headers.get_header(name), name
    assert (counts.get("response", 0), counts.get("revisit", 0)) == (responses, revisits), counts
    return counts


def judge_index(warc):
    theirs = index_lines(tool("cdxj-indexer", "-s", warc))
    with open(warc + ".cdxj", encoding="utf-8") as file:
        ours = index_lines(file.read())
    assert theirs == ours, [pair for pair in zip(theirs, ours) if pair[0] != pair[1]][:3]
    return ours


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def replayed(port, date, url):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    # Without it pywb undoes the content coding.
    headers = {"Accept-Encoding": "gzip, deflate, br, zstd"}
    connection.request("GET", f"/judged/{date}id_/{url}", headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def judge_replay(nenrin, archive, warc, lines):
    folder = os.path.join(os.path.dirname(warc), "pywb")
    os.mkdir(folder)
    tool("wb-manager", "init", "judged", cwd=folder)
    tool("wb-manager", "add", "judged", warc, cwd=folder)
    port = free_port()
    log = open(os.path.join(folder, "log"), "w", encoding="utf-8")
    server = subprocess.Popen(
        [os.path.join(BIN, "wayback"), "-p", str(port), "-b", "127.0.0.1"],
        cwd=folder, stdout=log, stderr=log,
    )
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        random.seed(1)
        pages = [line for line in lines if line[8] in (None, "200")]
        sample = random.sample(pages, min(SAMPLE, len(pages)))
        for _, date, url, *_ in sample:
            status, body = replayed(port, date, url)
            ours = subprocess.run(
                [nenrin, "--archive", archive, "cat", url, "--at", date], capture_output=True, check=True
            ).stdout
            assert body == ours, f"{url} as of {date}: {status}, {len(body)} bytes instead of {len(ours)}"
        return len(sample)
    finally:
        server.terminate()
        server.wait(20)


def main():
    nenrin, archive, folder, responses, revisits = sys.argv[1:]
    warc = os.path.join(folder, "export.warc.gz")
    counts = judge_records(warc, int(responses), int(revisits))
    lines = judge_index(warc)
    tool("wacz", "validate", "-f", os.path.join(folder, "export.wacz"))
    sample = judge_replay(nenrin, archive, warc, lines)
    print(f"{counts}; {len(lines)} index lines; {sample} pages replayed")


main()
