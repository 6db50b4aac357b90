"""The files of the image's root, in the folder of every job."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.testing import running
from tests.sandbox.conftest import World

pytestmark = pytest.mark.slow


def test_the_images_files_are_in_the_jobs_folder_and_the_folder_goes(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("cat data/x; echo new > made-by-the-job; ls; pwd\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("from the image\n")
    (tmp_path / ".git").mkdir()
    with running(image_root=tmp_path) as sandbox:
        world = World(sandbox)
        world.environment("ce")
        world.queue("q", "ce")
        world.definition("d")
        lines = world.lines(world.over(world.submit("sh", "train.sh")))
        assert lines[0] == "from the image"
        assert lines[1:-1] == ["data", "made-by-the-job", "train.sh"]
        assert not Path(lines[-1]).exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".git", "data", "train.sh"]
