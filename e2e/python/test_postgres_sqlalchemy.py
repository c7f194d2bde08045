"""SQLAlchemy's PostgreSQL dialect: a model, its rows, queries, reflection."""

import datetime
import decimal
import uuid

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Session


class Base(DeclarativeBase):
    pass


class Person(Base):
    __tablename__ = "alchemists"

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=False)
    name = sa.Column(sa.String(50), nullable=False)
    age = sa.Column(sa.SmallInteger)
    wealth = sa.Column(sa.Numeric(12, 2))
    born = sa.Column(sa.Date)
    seen = sa.Column(sa.DateTime(timezone=True))
    key = sa.Column(sa.Uuid)
    active = sa.Column(sa.Boolean)
    tags = sa.Column(postgresql.ARRAY(sa.String))
    details = sa.Column(sa.JSON)


@pytest.fixture(scope="module")
def engine(member):
    engine = sa.create_engine(f"postgresql+psycopg://ann@127.0.0.1:{member.postgres_port}/filbert")
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    yield engine
    Base.metadata.drop_all(engine)
    engine.dispose()


@pytest.fixture
def session(engine):
    with Session(engine) as session:
        yield session
        session.rollback()
        session.execute(sa.delete(Person))
        session.commit()


def person(number):
    return Person(
        id=number,
        name=f"name {number}",
        age=20 + number,
        wealth=decimal.Decimal(number) + decimal.Decimal("0.25"),
        born=datetime.date(2000, 1, 1 + number),
        seen=datetime.datetime(2024, 2, 29, 1, 2, 3, number, tzinfo=datetime.timezone.utc),
        key=uuid.UUID(int=number),
        active=number % 2 == 0,
        tags=["a", f"tag {number}"],
        details={"number": number, "none": None},
    )


def test_objects_come_back_as_they_went(session):
    session.add_all(person(number) for number in range(10))
    session.commit()
    session.expunge_all()
    found = session.get(Person, 3)
    expected = person(3)
    for column in Person.__table__.columns.keys():
        assert getattr(found, column) == getattr(expected, column), column


def test_objects_are_changed_and_deleted(session):
    session.add_all(person(number) for number in range(3))
    session.commit()
    session.get(Person, 1).name = "changed"
    session.delete(session.get(Person, 2))
    session.commit()
    assert session.scalars(sa.select(Person.name).order_by(Person.id)).all() == ["name 0", "changed"]


def test_queries_are_those_of_an_application(session):
    session.add_all(person(number) for number in range(10))
    session.commit()
    query = sa.select(Person.active, sa.func.count(), sa.func.max(Person.wealth)).group_by(Person.active)
    assert sorted(session.execute(query).all()) == [(False, 5, decimal.Decimal("9.25")), (True, 5, decimal.Decimal("8.25"))]
    assert session.scalars(sa.select(Person.id).where(Person.id.in_([1, 3, 99])).order_by(Person.id)).all() == [1, 3]
    assert session.scalars(sa.select(Person.id).where(Person.name.like("name 1%"))).all() == [1]
    assert session.scalars(sa.select(Person.id).order_by(Person.id.desc()).limit(2).offset(1)).all() == [8, 7]
    assert session.scalar(sa.select(sa.exists().where(Person.age > 28))) is True


def test_a_row_that_is_there_is_an_integrity_error(session):
    session.add(person(1))
    session.commit()
    session.expunge_all()
    session.add(person(1))
    with pytest.raises(sa.exc.IntegrityError):
        session.commit()


def test_the_table_is_reflected(engine):
    inspector = sa.inspect(engine)
    assert "alchemists" in inspector.get_table_names()
    assert inspector.has_table("alchemists") and not inspector.has_table("nothing_of_this_name")
    columns = {column["name"]: column for column in inspector.get_columns("alchemists")}
    assert list(columns) == list(Person.__table__.columns.keys())
    assert isinstance(columns["age"]["type"], sa.SMALLINT)
    assert isinstance(columns["seen"]["type"], sa.TIMESTAMP) and columns["seen"]["type"].timezone
    assert isinstance(columns["tags"]["type"], postgresql.ARRAY)
    assert (columns["wealth"]["type"].precision, columns["wealth"]["type"].scale) == (12, 2)
    assert [columns[name]["nullable"] for name in ("name", "age")] == [False, True]
    assert inspector.get_pk_constraint("alchemists")["constrained_columns"] == ["id"]
    assert inspector.get_foreign_keys("alchemists") == []
    reflected = sa.Table("alchemists", sa.MetaData(), autoload_with=engine)
    assert reflected.primary_key.columns.keys() == ["id"]
