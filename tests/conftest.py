import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = "--no-sandbox --disable-gpu --disable-background-networking --no-first-run --disable-component-update"
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH (apt install chromium)")


def pytest_addoption(parser):
    parser.addoption("--published", metavar="FILE", help="check the package against this file of published numbers")


@pytest.fixture(scope="session", autouse=True)
def no_rank_outlives_the_tests():
    yield
    from ringzero.launch import pool

    pool.stop()


@pytest.fixture(scope="session")
def browser():
    """One for all the tests: a second one cannot start beside the first."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        yield chromium
        chromium.close()
