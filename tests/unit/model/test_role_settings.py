"""The settings with which the server executes the statements of a role."""

from uncork.model.database.catalogue import RoleSetting
from uncork.model.database.role_settings import decides_plans, settings_of_role

SETTINGS = (
    RoleSetting("", "shop", "work_mem", "1MB"),
    RoleSetting("", "shop", "random_page_cost", "1.1"),
    RoleSetting("app", "shop", "work_mem", "64kB"),
    RoleSetting("app", "", "work_mem", "2MB"),
    RoleSetting("app", "", "enable_seqscan", "off"),
    RoleSetting("app", "", "statement_timeout", "1s"),
    RoleSetting("report", "", "jit", "off"),
    RoleSetting("report", "", "search_path", ""),
)


def test_the_closest_setting_of_a_role_is_in_force():
    assert settings_of_role(SETTINGS, "app") == {"work_mem": "64kB", "enable_seqscan": "off"}


def test_a_role_without_its_own_setting_has_the_databases_where_roles_differ():
    assert settings_of_role(SETTINGS, "report") == {"work_mem": "1MB", "jit": "off"}
    assert settings_of_role(SETTINGS[:2], "app") == {}


def test_only_settings_of_plans_and_answers_count():
    assert decides_plans("timezone") and decides_plans("cpu_tuple_cost") and decides_plans("jit")
    assert not decides_plans("statement_timeout") and not decides_plans("vacuum_cost_delay")
