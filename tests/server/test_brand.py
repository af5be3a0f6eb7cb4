"""The web UI has the title, the colour and the logo of its server, and can be installed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.config.load import load_config
from everturn.config.server_options import ServerOptions
from everturn.errors import ConfigError
from everturn.server.brand import CONTRAST, DARK, LIGHT, LOGO_LIMIT, Branding, accent_style, contrast, parse_color
from tests.helpers.server_app import ask, make, make_house

PAGE = b"<!doctype html><html><head><title>Everturn</title></head><body></body></html>"
LOGO = b'<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "index.html").write_bytes(PAGE)
    monkeypatch.setenv("EVERTURN_WEB", str(tmp_path / "web"))


async def test_the_page_has_the_title_the_colour_and_the_logo(tmp_path: Path) -> None:
    (tmp_path / "logo.svg").write_bytes(LOGO)
    options = ServerOptions(title="Acme <Chat>", accent="#aa0000", logo=str(tmp_path / "logo.svg"))
    app = make(await make_house(), options=options)
    page = (await ask(app, "GET", "/")).body.decode()
    assert "<title>Acme &lt;Chat&gt;</title>" in page
    assert '<meta name="everturn-title" content="Acme &lt;Chat&gt;">' in page
    assert '<link rel="stylesheet" href="/branding.css">' in page
    style = await ask(app, "GET", "/branding.css")
    assert (style.header("content-type"), style.body[:12]) == ("text/css; charset=utf-8", b":root:root{-")
    logo = await ask(app, "GET", "/branding/logo")
    assert (logo.body, logo.header("content-type")) == (LOGO, "image/svg+xml")
    assert "sandbox" in logo.header("content-security-policy")
    manifest = json.loads((await ask(app, "GET", "/manifest.webmanifest")).body)
    assert (manifest["name"], manifest["icons"][0]["src"]) == ("Acme <Chat>", "/branding/logo")


async def test_without_branding_nothing_is_added() -> None:
    app = make(await make_house())
    page = (await ask(app, "GET", "/")).body.decode()
    assert "<title>Everturn</title>" in page
    assert "branding.css" not in page
    assert (await ask(app, "GET", "/branding/logo")).status == 404
    assert json.loads((await ask(app, "GET", "/manifest.webmanifest")).body)["theme_color"] == "#0f766e"


@given(st.integers(0, 0xFFFFFF))
def test_every_colour_is_readable_in_both_themes(value: int) -> None:
    found = re.findall(r"--([a-z-]+):light-dark\((#\w+),(#\w+)\)", accent_style(f"#{value:06x}"))
    colors = {name: [parse_color(text) for text in pair] for name, *pair in found}
    for theme, backgrounds in enumerate((LIGHT, DARK)):
        for behind in (*backgrounds, colors["accent-soft"][theme]):
            assert contrast(colors["accent"][theme], behind) >= CONTRAST
        assert contrast(colors["on-accent"][theme], colors["accent"][theme]) >= CONTRAST


def test_contrast_is_that_of_wcag() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((0x76, 0x76, 0x76), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize(("name", "size", "text"), [("a.gif", 1, "neither"), ("a.png", LOGO_LIMIT + 1, "larger")])
def test_a_file_that_is_no_logo_is_refused(tmp_path: Path, name: str, size: int, text: str) -> None:
    (tmp_path / name).write_bytes(b"x" * size)
    with pytest.raises(ConfigError, match=text):
        Branding(ServerOptions(logo=str(tmp_path / name)))
    with pytest.raises(ConfigError, match=r"server\.logo: .* cannot be read"):
        Branding(ServerOptions(logo=str(tmp_path / "none.svg")))


@pytest.mark.parametrize(
    ("key", "value"), [("accent", "teal"), ("accent", "#12345"), ("title", " "), ("title", "x" * 61)]
)
def test_a_value_that_cannot_be_used_is_named(tmp_path: Path, key: str, value: str) -> None:
    file = tmp_path / "everturn.toml"
    file.write_text(f'[server]\n{key} = "{value}"\n')
    with pytest.raises(ConfigError, match=f"server.{key}"):
        load_config(str(file))
