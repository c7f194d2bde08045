// SQL: statements, parameters, types, cursors and errors, over every format that this client writes.

package e2e

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/sql"
	"github.com/hazelcast/hazelcast-go-client/types"
)

// table is a map with its mapping; `{map}` in a statement stands for its name.
type table struct {
	client *hazelcast.Client
	m      *hazelcast.Map
	name   string
}

// ten is a table of the numbers 0 to 9 under themselves.
func ten(t *testing.T) table {
	t.Helper()
	client := peopleClient(t)
	name := "go_" + strings.NewReplacer("/", "_", " ", "_", "#", "_").Replace(t.Name())
	m, err := client.GetMap(ctx, name)
	must(t, err)
	for i := int32(0); i < 10; i++ {
		must(t, m.Set(ctx, i, i))
	}
	made := table{client, m, name}
	made.run(t, "CREATE OR REPLACE MAPPING {map} TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')")
	return made
}

// try runs a statement to its end and gives its rows.
func (it table) try(text string, parameters ...any) ([][]any, error) {
	return it.tryStatement(sql.NewStatement(strings.ReplaceAll(text, "{map}", it.name), parameters...))
}

func (it table) tryStatement(statement sql.Statement) ([][]any, error) {
	result, err := it.client.SQL().ExecuteStatement(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	rows := [][]any{}
	if !result.IsRowSet() {
		return rows, nil
	}
	iterator, err := result.Iterator()
	if err != nil {
		return nil, err
	}
	for iterator.HasNext() {
		row, err := iterator.Next()
		if err != nil {
			return nil, err
		}
		values := []any{}
		for i := 0; i < row.Metadata().ColumnCount(); i++ {
			value, err := row.Get(i)
			if err != nil {
				return nil, err
			}
			values = append(values, value)
		}
		rows = append(rows, values)
	}
	return rows, nil
}

func (it table) run(t *testing.T, text string, parameters ...any) [][]any {
	t.Helper()
	rows, err := it.try(text, parameters...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rows
}

// gives compares rows as text, so that numbers of any width are the same.
func (it table) gives(t *testing.T, expected string, text string, parameters ...any) {
	t.Helper()
	if found := fmt.Sprint(it.run(t, text, parameters...)); found != expected {
		t.Fatalf("%s: expected %s, found %s", text, expected, found)
	}
}

func TestSQLQueries(t *testing.T) {
	it := ten(t)
	it.gives(t, "[[8] [9]]", "SELECT this FROM {map} WHERE this > ? ORDER BY this", int32(7))
	it.gives(t, "[[9] [8]]", "SELECT this FROM {map} ORDER BY this DESC LIMIT 2")
	it.gives(t, "[[0 5 20] [1 5 25]]", "SELECT this % 2, COUNT(*), SUM(this) FROM {map} GROUP BY this % 2 ORDER BY 1")
	it.gives(t, "[[8] [9]]", "SELECT a.this FROM {map} a JOIN {map} b ON a.this = b.this + 8 ORDER BY 1")
	it.gives(t, "[[5]]", "SELECT __key FROM {map} WHERE __key = 5")
	it.gives(t, "[[10]]", "SELECT COUNT(*) FROM {map}")
	it.gives(t, "[[1] [2] [3]]", "SELECT v FROM TABLE(generate_series(1, 3)) ORDER BY v")
	if !realHazelcast {
		it.gives(t, "[[8] [9]]", "SELECT this FROM {map} WHERE this IN (SELECT __key + 8 FROM {map}) ORDER BY this")
	}
}

func TestSQLMetadata(t *testing.T) {
	it := ten(t)
	result, err := it.client.SQL().Execute(ctx, "SELECT __key AS k, CAST(this AS VARCHAR) AS t FROM "+it.name)
	must(t, err)
	defer result.Close()
	metadata, err := result.RowMetadata()
	must(t, err)
	first, err := metadata.GetColumn(0)
	must(t, err)
	second, err := metadata.GetColumn(1)
	must(t, err)
	equal(t, []any{"k", sql.ColumnTypeInt, "t", sql.ColumnTypeVarchar},
		[]any{first.Name(), first.Type(), second.Name(), second.Type()}, nil)
}

func TestSQLChanges(t *testing.T) {
	it := ten(t)
	result, err := it.client.SQL().Execute(ctx, "INSERT INTO "+it.name+" VALUES (?, ?)", int32(20), int32(1))
	must(t, err)
	count := int64(1)
	if realHazelcast {
		count = 0 // it does not count
	}
	equal(t, []any{false, count}, []any{result.IsRowSet(), result.UpdateCount()}, nil)
	if _, err := it.try("INSERT INTO {map} VALUES (20, 2)"); err == nil {
		t.Fatal("a key was inserted twice")
	}
	it.run(t, "SINK INTO {map} VALUES (20, 2)")
	found, err := it.m.Get(ctx, int32(20))
	equal(t, any(int32(2)), found, err)
	it.run(t, "UPDATE {map} SET this = this * 100 WHERE __key = 20")
	found, err = it.m.Get(ctx, int32(20))
	equal(t, any(int32(200)), found, err)
	it.run(t, "DELETE FROM {map} WHERE this > ?", int32(5))
	size, err := it.m.Size(ctx)
	equal(t, 6, size, err)
}

func TestSQLPages(t *testing.T) {
	it := ten(t)
	statement := sql.NewStatement("SELECT this FROM " + it.name + " ORDER BY this")
	must(t, statement.SetCursorBufferSize(3))
	rows, err := it.tryStatement(statement)
	equal(t, "[[0] [1] [2] [3] [4] [5] [6] [7] [8] [9]]", fmt.Sprint(rows), err)
	statement = sql.NewStatement("SELECT v FROM TABLE(generate_stream(1000))")
	must(t, statement.SetCursorBufferSize(1))
	result, err := it.client.SQL().ExecuteStatement(ctx, statement)
	must(t, err)
	iterator, err := result.Iterator()
	must(t, err)
	if !iterator.HasNext() {
		t.Fatal("a stream is empty")
	}
	must(t, result.Close())
	it.gives(t, "[[10]]", "SELECT COUNT(*) FROM {map}")
}

func TestSQLErrors(t *testing.T) {
	it := ten(t)
	for _, text := range []string{
		"SELEC 1", "SELECT missing FROM {map}", "SELECT this / 0 FROM {map}", "SELECT * FROM {map} WHERE this = ?",
		"SELECT * FROM nothing_of_the_kind",
	} {
		_, err := it.try(text)
		var refused *sql.Error
		if !errors.As(err, &refused) || refused.Message == "" {
			t.Fatalf("%s: %#v", text, err)
		}
		it.gives(t, "[[10]]", "SELECT COUNT(*) FROM {map}")
	}
}

func TestSQLTypesInEveryFormat(t *testing.T) {
	it := ten(t)
	instant := time.Date(2024, 2, 29, 12, 34, 56, 123_456_000, time.UTC)
	second := instant.Truncate(time.Second)
	values := []struct {
		kind  string
		value any
	}{
		{"VARCHAR", "täxt 😀"}, {"BOOLEAN", true}, {"SMALLINT", int16(-300)}, {"INTEGER", int32(-70_000)},
		{"BIGINT", -int64(1) << 40}, {"REAL", float32(1.5)}, {"DOUBLE", 0.1},
		{"DECIMAL", types.NewDecimal(big.NewInt(12_345), 3)}, {"DATE", types.LocalDate(second)},
		{"TIME", types.LocalTime(second)}, {"TIMESTAMP", types.LocalDateTime(instant)},
		{"TIMESTAMP WITH TIME ZONE", types.OffsetDateTime(instant)},
	}
	for number, each := range values {
		t.Run(each.kind, func(t *testing.T) {
			rows := it.run(t, "SELECT CAST(? AS "+each.kind+")", each.value)
			equal(t, plain(each.kind, each.value), plain(each.kind, rows[0][0]), nil)
			rows = it.run(t, "SELECT CAST(? AS "+each.kind+")", nil)
			equal(t, nil, rows[0][0], nil)
			for format, options := range map[string]string{
				"json":     "'valueFormat'='json-flat'",
				"portable": fmt.Sprintf("'valueFormat'='portable', 'valuePortableFactoryId'='71', 'valuePortableClassId'='%d'", number+1),
				"compact":  fmt.Sprintf("'valueFormat'='compact', 'valueCompactTypeName'='go-types-%d'", number),
			} {
				name := fmt.Sprintf("go_types_%s_%d", format, number)
				typed := table{it.client, nil, name}
				typed.run(t, "CREATE OR REPLACE MAPPING {map} (__key INT, v "+each.kind+", w INT) TYPE IMap OPTIONS ('keyFormat'='int', "+options+")")
				typed.run(t, "SINK INTO {map} VALUES (1, ?, 7)", each.value)
				rows = typed.run(t, "SELECT v FROM {map}")
				equal(t, plain(each.kind, each.value), plain(each.kind, rows[0][0]), nil)
				typed.gives(t, "[[1]]", "SELECT __key FROM {map} WHERE v = ?", each.value)
			}
		})
	}
}

// plain makes times and decimals comparable.
func plain(kind string, value any) any {
	switch value := value.(type) {
	case types.LocalDate:
		return time.Time(value).Format("2006-01-02")
	case types.LocalTime:
		return time.Time(value).Format("15:04:05.999999")
	case types.LocalDateTime:
		return time.Time(value).Format("2006-01-02T15:04:05.999999")
	case types.OffsetDateTime:
		return time.Time(value).UTC().Format(time.RFC3339Nano)
	case types.Decimal:
		return value.Float64()
	default:
		return value
	}
}

func TestSQLFieldsAreColumns(t *testing.T) {
	client := peopleClient(t)
	for format, options := range map[string]string{
		"json":     "'valueFormat'='json-flat'",
		"portable": "'valueFormat'='portable', 'valuePortableFactoryId'='70', 'valuePortableClassId'='1'",
		"compact":  "'valueFormat'='compact', 'valueCompactTypeName'='go-person'",
	} {
		t.Run(format, func(t *testing.T) {
			it := table{client, nil, "go_people_" + format}
			fillPeople(t, client, it.name, format)
			it.run(t, "CREATE OR REPLACE MAPPING {map} (__key INT, name VARCHAR, age INT, balance BIGINT, height DOUBLE,"+
				" active BOOLEAN) TYPE IMap OPTIONS ('keyFormat'='int', "+options+")")
			it.gives(t, "[[1 Ada 36 1099511627776 1.65 true]]", "SELECT * FROM {map} WHERE name = 'Ada'")
			it.gives(t, "[[Alan] [Édith] [Grace]]", "SELECT name FROM {map} WHERE age > ? ORDER BY age", int32(40))
			it.gives(t, "[[false 2 1.78] [true 3 1.9]]",
				"SELECT active, COUNT(*), MAX(height) FROM {map} GROUP BY active ORDER BY active")
		})
	}
}
