"""Spark frames, on a local Spark with two threads."""

import shutil
import sys

import pytest

from engines.conftest import ALONE, REASON, only_missing, same
from gpattr.exceptions import InvalidInputError

pytestmark = [
    pytest.mark.skipif(ALONE is None, reason=REASON),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, which is missing"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pandas', raised inside PySpark
    pytest.mark.filterwarnings("ignore:toPandas attempted Arrow optimization:UserWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # sockets of Spark's gateway
]


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.master("local[2]")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.log.level": "OFF",
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


def test_frames_are_explained_by_partition(spark, explainer, table, expected, with_a_hole):
    rows = spark.createDataFrame(table).coalesce(2)
    result = explainer.map_table(rows, keep=["id"])
    assert result.columns == ["id", *expected.columns]
    same(result.toPandas(), expected, table)
    holes = with_a_hole.astype(object).where(with_a_hole.notna(), None)
    rows = spark.createDataFrame(holes, rows.schema).repartition(1)
    missing = explainer.map_table(rows, errors="missing", keep=["id"])
    assert [row["id"] for row in missing.filter("prediction IS NULL").collect()] == ["row 77"]
    only_missing(missing.toPandas(), 77, expected)
    with pytest.raises(Exception, match="partition 0: X: .*nan in row 77, column 'b'"):
        explainer.map_table(rows, keep=["id"]).collect()
    with pytest.raises(InvalidInputError, match=r"unknown \['id'\]"):
        explainer.map_table(rows)
