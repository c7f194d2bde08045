"""SQLAlchemy's dialect for CrateDB: a model, its rows, queries, reflection."""

import datetime

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session, declarative_base
from sqlalchemy_cratedb import ObjectType

Base = declarative_base()


class Person(Base):
    __tablename__ = "alchemy_people"
    __table_args__ = {"crate_number_of_replicas": 0}

    id = sa.Column(sa.String, primary_key=True)
    name = sa.Column(sa.String)
    age = sa.Column(sa.Integer)
    born = sa.Column(sa.DateTime)
    score = sa.Column(sa.Float)
    active = sa.Column(sa.Boolean)
    tags = sa.Column(sa.ARRAY(sa.String))
    details = sa.Column(ObjectType)


@pytest.fixture(scope="module")
def engine(member):
    engine = sa.create_engine(f"crate://127.0.0.1:{member.http_port}")
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


def people():
    born = datetime.datetime(2000, 1, 2, 3, 4, 5)
    return [
        Person(id=str(n), name=f"name {n}", age=20 + n, born=born, score=n / 2, active=n % 2 == 0, tags=["a", str(n)], details={"n": n})
        for n in range(10)
    ]


def test_objects_go_in_and_come_back(session):
    session.add_all(people())
    session.commit()
    session.expire_all()
    person = session.get(Person, "3")
    assert (person.name, person.age, person.score, person.active) == ("name 3", 23, 1.5, False)
    assert person.born == datetime.datetime(2000, 1, 2, 3, 4, 5)
    assert person.tags == ["a", "3"] and person.details == {"n": 3}


def test_objects_change_and_go(session):
    session.add_all(people())
    session.commit()
    person = session.get(Person, "3")
    person.name = "another"
    person.details["more"] = 1
    session.commit()
    assert session.scalars(sa.select(Person.details["more"]).where(Person.name == "another")).all() == [1]
    session.delete(person)
    session.commit()
    assert session.scalar(sa.select(sa.func.count()).select_from(Person)) == 9


def test_queries(session):
    session.add_all(people())
    session.commit()
    older = sa.select(Person.name).where(Person.age > 25).order_by(Person.age.desc()).limit(2)
    assert session.scalars(older).all() == ["name 9", "name 8"]
    grouped = sa.select(Person.active, sa.func.count(), sa.func.sum(Person.age)).group_by(Person.active).order_by(Person.active)
    assert [tuple(row) for row in session.execute(grouped)] == [(False, 5, 125), (True, 5, 120)]
    tagged = sa.select(Person.id).where(Person.tags.any("3"))
    assert session.scalars(tagged).all() == ["3"]
    assert session.scalars(sa.select(Person.id).where(Person.name.like("%7"))).all() == ["7"]


def test_rows_go_in_many_at_a_time(engine, session):
    rows = [{"id": f"b{n}", "name": "bulk", "age": n} for n in range(1000)]
    with engine.begin() as connection:
        connection.execute(sa.insert(Person.__table__), rows)
    assert session.scalar(sa.select(sa.func.sum(Person.age)).where(Person.name == "bulk")) == 499500


def test_tables_are_reflected(engine):
    inspector = sa.inspect(engine)
    assert "alchemy_people" in inspector.get_table_names()
    columns = {column["name"]: column["type"] for column in inspector.get_columns("alchemy_people")}
    assert isinstance(columns["age"], sa.Integer) and isinstance(columns["id"], sa.String)
    assert inspector.get_pk_constraint("alchemy_people")["constrained_columns"] == ["id"] or set(
        inspector.get_pk_constraint("alchemy_people")["constrained_columns"]
    ) == {"id"}
    assert "doc" in inspector.get_schema_names()
    table = sa.Table("alchemy_people", sa.MetaData(), autoload_with=engine)
    assert set(table.columns.keys()) == {column.name for column in Person.__table__.columns}
