// pgx, which speaks the extended protocol with binary values: statements, types, batches, cursors, COPY, errors.

package e2e

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// dial makes a connection that ends with the test.
func dial(t *testing.T) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(ctx, fmt.Sprintf("postgres://ann@%s/filbert", shared.postgres))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close(ctx) })
	return connection
}

// makeTable makes a table that ends with the test.
func makeTable(t *testing.T, connection *pgx.Conn, name, columns string) {
	t.Helper()
	_, err := connection.Exec(ctx, fmt.Sprintf("CREATE TABLE %s (%s)", name, columns))
	must(t, err)
	t.Cleanup(func() { _, _ = connection.Exec(ctx, "DROP TABLE "+name) })
}

func sqlState(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return ""
}

func TestPostgresStatementsAndParameters(t *testing.T) {
	connection := dial(t)
	var number int32
	var text string
	var nothing *string
	must(t, connection.QueryRow(ctx, "SELECT $1::int + 1, $2::text, NULL::text", 41, "ü").Scan(&number, &text, &nothing))
	if number != 42 || text != "ü" || nothing != nil {
		t.Fatalf("found %d, %q, %v", number, text, nothing)
	}
	if version := connection.PgConn().ParameterStatus("server_version"); len(version) < 4 || version[:4] != "14.0" {
		t.Fatalf("found version %q", version)
	}
}

func TestPostgresValuesComeBackAsTheyWent(t *testing.T) {
	connection := dial(t)
	makeTable(t, connection, "go_values", "id int PRIMARY KEY, big bigint, score double precision, yes boolean, bytes bytea, moment timestamptz, tags text[]")
	moment := time.Date(2024, 2, 29, 13, 14, 15, 678901000, time.UTC)
	tag, err := connection.Exec(ctx, "INSERT INTO go_values VALUES ($1, $2, $3, $4, $5, $6, $7)",
		1, int64(1)<<60, 0.1, true, []byte{0, 255}, moment, []string{"a", "b,c"})
	must(t, err)
	if tag.String() != "INSERT 0 1" {
		t.Fatalf("found tag %q", tag)
	}
	var big int64
	var score float64
	var yes bool
	var bytes []byte
	var found time.Time
	var tags []string
	row := connection.QueryRow(ctx, "SELECT big, score, yes, bytes, moment, tags FROM go_values WHERE id = $1", 1)
	must(t, row.Scan(&big, &score, &yes, &bytes, &found, &tags))
	if big != 1<<60 || score != 0.1 || !yes || !reflect.DeepEqual(bytes, []byte{0, 255}) || !found.Equal(moment) || !reflect.DeepEqual(tags, []string{"a", "b,c"}) {
		t.Fatalf("found %v %v %v %v %v %v", big, score, yes, bytes, found, tags)
	}
}

func TestPostgresListsOfKeysAreParameters(t *testing.T) {
	connection := dial(t)
	makeTable(t, connection, "go_lists", "id int PRIMARY KEY, name text")
	_, err := connection.Exec(ctx, "INSERT INTO go_lists VALUES (1, 'a'), (2, 'b'), (3, 'c')")
	must(t, err)
	rows, err := connection.Query(ctx, "SELECT name FROM go_lists WHERE id = ANY($1) AND name <> ALL($2)", []int32{1, 2, 7}, []string{"a"})
	must(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if !reflect.DeepEqual(names, []string{"b"}) {
		t.Fatalf("found %v", names)
	}
}

func TestPostgresBatchesAnswerInOrder(t *testing.T) {
	connection := dial(t)
	batch := &pgx.Batch{}
	for number := 0; number < 100; number++ {
		batch.Queue("SELECT $1::int", number)
	}
	results := connection.SendBatch(ctx, batch)
	for number := 0; number < 100; number++ {
		var found int
		must(t, results.QueryRow().Scan(&found))
		if found != number {
			t.Fatalf("found %d, expected %d", found, number)
		}
	}
	must(t, results.Close())
}

func TestPostgresRowsAreCopiedIn(t *testing.T) {
	connection := dial(t)
	makeTable(t, connection, "go_copied", "id int PRIMARY KEY, text text")
	rows := make([][]any, 5000)
	for number := range rows {
		rows[number] = []any{number, fmt.Sprintf("row %d", number)}
	}
	count, err := connection.CopyFrom(ctx, pgx.Identifier{"go_copied"}, []string{"id", "text"}, pgx.CopyFromRows(rows))
	must(t, err)
	var found int64
	must(t, connection.QueryRow(ctx, "SELECT count(*) FROM go_copied").Scan(&found))
	if count != 5000 || found != 5000 {
		t.Fatalf("copied %d, found %d", count, found)
	}
}

func TestPostgresErrorsAndTransactions(t *testing.T) {
	connection := dial(t)
	_, err := connection.Exec(ctx, "SELECT * FROM nothing_of_this_name")
	if sqlState(err) != "42P01" {
		t.Fatalf("found %v", err)
	}
	transaction, err := connection.Begin(ctx)
	must(t, err)
	if _, err = transaction.Exec(ctx, "nonsense"); sqlState(err) != "42601" {
		t.Fatalf("found %v", err)
	}
	if _, err = transaction.Exec(ctx, "SELECT 1"); sqlState(err) != "25P02" {
		t.Fatalf("found %v", err)
	}
	must(t, transaction.Rollback(ctx))
	var one int
	must(t, connection.QueryRow(ctx, "SELECT 1").Scan(&one))
}
