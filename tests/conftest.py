import pytest


def pytest_addoption(parser):
    parser.addoption("--published", metavar="FILE", help="check the package against this file of published numbers")


@pytest.fixture(scope="session", autouse=True)
def no_rank_outlives_the_tests():
    yield
    from ringzero.launch import pool

    pool.stop()
