"""How a program was started is stored without its secrets."""

import pytest

from uncork.model.services.program import stored_program


@pytest.mark.parametrize(("name", "value", "stored"), [
    ("POOL", "8", "8"),
    ("LOG_LEVEL", "info", "info"),
    ("STRIPE_KEY", "short", None),
    ("DB_PASSWORD", "x", None),
    ("SESSION_SALT", "x", None),
    ("SSL_CERT_FILE", "/etc/ssl/cert.pem", "/etc/ssl/cert.pem"),
    ("GOOGLE_CREDENTIALS_PATH", "/etc/key.json", "/etc/key.json"),
    ("UPSTREAM", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", None),
    ("CACHE", "redis://:hidden@cache:6379/1", "redis://:***@cache:6379/1"),
    ("DB_DSN", "postgresql://app:hidden@db/shop?sslmode=require", "postgresql://app:***@db/shop?sslmode=require"),
    ("DB_DSN", "postgresql+asyncpg://app:hidden@db/shop", "postgresql+asyncpg://app:***@db/shop"),
    ("DB", "host=db dbname=shop password=hidden", "host=db dbname=shop password=***"),
])  # fmt: skip
def test_values_that_may_be_secrets_are_not_stored(name, value, stored):
    program = stored_program(["/bin/app"], "/srv", {name: value})
    assert program.environment == {name: stored}
    assert "hidden" not in repr(program)


def test_secrets_among_the_arguments_are_not_stored():
    words = (
        "/bin/app",
        "--token",
        "abc",
        "--api-key=abc",
        "--dsn=postgresql://app:abc@db/shop",
        "-v",
        "serve",
    )
    program = stored_program(words, "/srv", None, "app: postgresql://app:abc@db")
    assert program.command == (
        *("/bin/app", "--token", "***", "--api-key=***", "--dsn=postgresql://app:***@db/shop", "-v", "serve"),
    )
    assert "abc" not in repr(program)
    assert program.environment is None
