// Values of every type, written by one language's client and read by another's: as values, and as keys, whose bytes must
// be equal for the entry to be found.

package e2e

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/serialization"
	"github.com/hazelcast/hazelcast-go-client/types"
)

type exchanged struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"`
	Value   json.RawMessage `json:"value"`
	Writers []string        `json:"writers"`
}

func (e exchanged) writtenBy(language string) bool {
	for _, writer := range e.Writers {
		if writer == language {
			return true
		}
	}
	return false
}

func (e exchanged) native(t *testing.T) any {
	t.Helper()
	if !strings.HasSuffix(e.Type, "[]") && e.Type != "list" {
		return scalar(t, e.Type, strings.TrimSpace(text(e.Value)))
	}
	var items []json.RawMessage
	must(t, json.Unmarshal(e.Value, &items))
	component := strings.TrimSuffix(e.Type, "[]")
	if e.Type == "list" {
		list := make([]any, 0, len(items))
		for _, item := range items {
			list = append(list, text(item))
		}
		return list
	}
	kind := reflect.TypeOf(scalar(t, component, map[string]string{"boolean": "true", "string": ""}[component]+zero(component)))
	slice := reflect.MakeSlice(reflect.SliceOf(kind), 0, len(items))
	for _, item := range items {
		slice = reflect.Append(slice, reflect.ValueOf(scalar(t, component, text(item))))
	}
	return slice.Interface()
}

// zero is the text of a number, for the types that are numbers.
func zero(component string) string {
	if component == "boolean" || component == "string" {
		return ""
	}
	return "0"
}

// text is the JSON text's content when it is quoted, and itself when not.
func text(raw json.RawMessage) string {
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		return quoted
	}
	return string(raw)
}

func scalar(t *testing.T, kind, text string) any {
	t.Helper()
	integer := func(bits int) int64 {
		number, err := strconv.ParseInt(text, 10, bits)
		must(t, err)
		return number
	}
	instant := func(layout string) time.Time {
		parsed, err := time.Parse(layout, text)
		must(t, err)
		return parsed
	}
	float := func(bits int) float64 {
		number, err := strconv.ParseFloat(text, bits)
		must(t, err)
		return number
	}
	switch kind {
	case "boolean":
		return text == "true"
	case "byte":
		return uint8(integer(16))
	case "char":
		return uint16([]rune(text)[0])
	case "short":
		return int16(integer(16))
	case "int":
		return int32(integer(32))
	case "long":
		return integer(64)
	case "float":
		return float32(float(32))
	case "double":
		return float(64)
	case "string":
		return text
	case "uuid":
		hex := strings.ReplaceAll(text, "-", "")
		most, err := strconv.ParseUint(hex[:16], 16, 64)
		must(t, err)
		least, err := strconv.ParseUint(hex[16:], 16, 64)
		must(t, err)
		return types.NewUUIDWith(most, least)
	case "json":
		return serialization.JSON(text)
	case "big_integer":
		number, _ := new(big.Int).SetString(text, 10)
		return number
	case "decimal":
		digits, scale := strings.Replace(text, ".", "", 1), len(text)-strings.Index(text, ".")-1
		number, _ := new(big.Int).SetString(digits, 10)
		return types.NewDecimal(number, scale)
	case "date":
		return types.LocalDate(instant("2006-01-02"))
	case "time":
		return types.LocalTime(instant("15:04:05.999999"))
	case "date_time":
		return types.LocalDateTime(instant("2006-01-02T15:04:05.999999"))
	case "offset_date_time":
		return types.OffsetDateTime(instant("2006-01-02T15:04:05.999999-07:00"))
	}
	t.Fatalf("no value of type %s is known", kind)
	return nil
}

// same compares what was read to what was expected; dates and times by what they say.
func same(expected, found any) bool {
	switch wanted := expected.(type) {
	case types.LocalDate:
		got, ok := found.(types.LocalDate)
		return ok && time.Time(got).Format("2006-01-02") == time.Time(wanted).Format("2006-01-02")
	case types.LocalTime:
		got, ok := found.(types.LocalTime)
		return ok && time.Time(got).Format("15:04:05.000000") == time.Time(wanted).Format("15:04:05.000000")
	case types.LocalDateTime:
		got, ok := found.(types.LocalDateTime)
		layout := "2006-01-02T15:04:05.000000"
		return ok && time.Time(got).Format(layout) == time.Time(wanted).Format(layout)
	case types.OffsetDateTime:
		got, ok := found.(types.OffsetDateTime)
		layout := "2006-01-02T15:04:05.000000-07:00"
		return ok && time.Time(got).Format(layout) == time.Time(wanted).Format(layout)
	case *big.Int:
		got, ok := found.(*big.Int)
		return ok && got.Cmp(wanted) == 0
	case types.Decimal:
		got, ok := found.(types.Decimal)
		return ok && got.Scale() == wanted.Scale() && got.UnscaledValue().Cmp(wanted.UnscaledValue()) == 0
	case serialization.JSON:
		got, ok := found.(serialization.JSON)
		return ok && got.String() == wanted.String()
	}
	if value := reflect.ValueOf(expected); value.Kind() == reflect.Slice && value.Len() == 0 {
		return reflect.TypeOf(found) == reflect.TypeOf(expected) && reflect.ValueOf(found).Len() == 0
	}
	return reflect.DeepEqual(expected, found)
}

func TestExchange(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "shared", "types.json"))
	must(t, err)
	var rows struct {
		Values []exchanged `json:"values"`
	}
	must(t, json.Unmarshal(file, &rows))
	address := shared.address
	if everyone := os.Getenv("FILBERT_E2E_EXCHANGE"); everyone != "" {
		address = everyone
	}
	client := connect(t, clientConfig(address))
	phase, writers := os.Getenv("FILBERT_E2E_PHASE"), []string{"go"}
	if everyone := os.Getenv("FILBERT_E2E_WRITERS"); everyone != "" {
		writers = strings.Split(everyone, ",")
	}
	if phase != "read" {
		values, keys := exchangeMaps(t, client, "go")
		for _, row := range rows.Values {
			if row.writtenBy("go") {
				must(t, values.Set(ctx, row.Name, row.native(t)))
				must(t, keys.Set(ctx, row.native(t), row.Name))
			}
		}
	}
	if phase == "write" {
		return
	}
	for _, writer := range writers {
		values, keys := exchangeMaps(t, client, writer)
		for _, row := range rows.Values {
			if !row.writtenBy(writer) {
				continue
			}
			found, err := values.Get(ctx, row.Name)
			must(t, err)
			if expected := row.native(t); !same(expected, found) {
				t.Errorf("%s, %s: expected %#v, found %#v", writer, row.Name, expected, found)
			}
			if !row.writtenBy("go") {
				continue
			}
			if found, err = keys.Get(ctx, row.native(t)); err != nil || found != row.Name {
				t.Errorf("%s, %s: not found by key: %v, %v", writer, row.Name, found, err)
			}
		}
	}
}

func exchangeMaps(t *testing.T, client *hazelcast.Client, writer string) (values, keys *hazelcast.Map) {
	t.Helper()
	values, err := client.GetMap(ctx, "exchange-values-"+writer)
	must(t, err)
	keys, err = client.GetMap(ctx, "exchange-keys-"+writer)
	must(t, err)
	return values, keys
}
