"""What a serving process is set to: its memory lies in huge pages where the system has them."""

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.process.runtime import HUGE_PAGE, Region, into_huge_pages, regions, whole_pages

SMAPS = """\
55d000000000-55d000800000 rw-p 00000000 00:00 0                          [heap]
Size:               8192 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                8000 kB
Pss:                8000 kB
VmFlags: rd wr mr mw me ac sd
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
Size:               1024 kB
Rss:                1024 kB
7f0000200000-7f0000400000 rw-p 00001000 08:01 4711                       /usr/lib/libc.so.6
Size:               2048 kB
Rss:                2048 kB
7f0000500000-7f0000700000 r--p 00000000 00:00 0
Size:               2048 kB
Rss:                2048 kB
7ffc00000000-7ffc00200000 rw-p 00000000 00:00 0                          [stack]
Size:               2048 kB
Rss:                2048 kB
"""


def test_memory_of_no_file_is_what_may_lie_in_huge_pages() -> None:
    heap, arena = regions(SMAPS)
    assert heap == Region(0x55D000000000, 0x55D000800000, 8000 * 1024)
    assert arena == Region(0x7F0000000000, 0x7F0000100000, 1024 * 1024)


def test_only_whole_huge_pages_of_what_is_dense_are_asked_for() -> None:
    dense = Region(HUGE_PAGE + 4096, 4 * HUGE_PAGE, 3 * HUGE_PAGE - 4096)
    sparse = Region(10 * HUGE_PAGE, 20 * HUGE_PAGE, 5 * HUGE_PAGE)
    assert list(whole_pages([dense, sparse])) == [2 * HUGE_PAGE, 3 * HUGE_PAGE]
    assert list(whole_pages([Region(4096, HUGE_PAGE, HUGE_PAGE - 4096)])) == []


@pytest.mark.parametrize("wanted", ["always madvise [never]\n", None])
def test_a_host_that_wants_no_huge_pages_gets_none(
    wanted: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "enabled"
    if wanted is not None:
        file.write_text(wanted)
    monkeypatch.setattr("proxy.process.runtime._ALLOWED", file)
    assert into_huge_pages() == 0


_TAKES_SOME = """
from proxy.process.runtime import into_huge_pages
from pathlib import Path
kept = [[] for _ in range(600_000)]
def now(): return Path("/proc/self/smaps_rollup").read_text()
before = now()
print(into_huge_pages(), before, now(), sep="\\n#\\n")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are asked for on Linux")
def test_what_is_there_takes_no_more_memory_in_huge_pages() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", _TAKES_SOME], check=True, capture_output=True, text=True, timeout=60
    )
    count, before, after = printed.stdout.split("#")
    if int(count) == 0:
        pytest.skip("this kernel gives no huge pages")
    assert _kilobytes("AnonHugePages", after) >= int(count) * HUGE_PAGE // 1024
    assert _kilobytes("Rss", after) <= 1.1 * _kilobytes("Rss", before)


def _kilobytes(name: str, rollup: str) -> int:
    found = re.search(rf"^{name}: +(\d+) kB$", rollup, re.MULTILINE)
    assert found is not None
    return int(found[1])


_FREES_SOME = """
import sys
from pathlib import Path
from proxy.process.runtime import return_large_memory
if sys.argv[1:]: return_large_memory()
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
bytearray(30 << 20)  # from here on the C library would keep blocks of this size
before = resident()
large = [bytearray(b"x") * (30 << 20) for _ in range(4)]
above = [bytearray(50_000) for _ in range(9)]
del large
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has to be told")
def test_what_large_requests_took_goes_back_to_the_system() -> None:
    kept, returned = (
        int(subprocess.check_output([sys.executable, "-c", _FREES_SOME, *told], timeout=60))
        for told in ([], ["told"])
    )
    assert returned < 10 << 20 < kept
