// Predicates, aggregators, indexes and listeners with predicates, over every format whose fields a member can read.

package e2e

import (
	"fmt"
	"math"
	"reflect"
	"sort"
	"sync"
	"testing"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/aggregate"
	"github.com/hazelcast/hazelcast-go-client/predicate"
	"github.com/hazelcast/hazelcast-go-client/types"
)

var selected = map[string]struct {
	predicate predicate.Predicate
	keys      []int32
}{
	"equal text":       {predicate.Equal("name", "Ada"), []int32{1}},
	"equal int":        {predicate.Equal("age", int32(41)), []int32{3}},
	"equal long":       {predicate.Equal("balance", int64(1)<<40), []int32{1}},
	"equal double":     {predicate.Equal("height", 1.5), []int32{2}},
	"equal boolean":    {predicate.Equal("active", false), []int32{3, 4}},
	"equal nested":     {predicate.Equal("address.city", "London"), []int32{1, 3}},
	"equal key":        {predicate.Equal("__key", int32(4)), []int32{4}},
	"equal any item":   {predicate.Equal("tags[any]", "blue"), []int32{1, 2}},
	"equal item":       {predicate.Equal("tags[0]", "blue"), []int32{2}},
	"not equal":        {predicate.NotEqual("age", int32(36)), []int32{2, 3, 4, 5}},
	"greater":          {predicate.Greater("age", int32(41)), []int32{2, 4}},
	"greater or equal": {predicate.GreaterOrEqual("age", int32(41)), []int32{2, 3, 4}},
	"less":             {predicate.Less("age", int32(41)), []int32{1, 5}},
	"less or equal":    {predicate.LessOrEqual("age", int32(41)), []int32{1, 3, 5}},
	"between":          {predicate.Between("age", int32(36), int32(47)), []int32{1, 3, 4}},
	"in":               {predicate.In("name", "Ada", "Alan", "Nobody"), []int32{1, 3}},
	"like":             {predicate.Like("name", "A%"), []int32{1, 3}},
	"ilike":            {predicate.ILike("name", "ada%"), []int32{1, 5}},
	"regex":            {predicate.Regex("name", "A.*a.*"), []int32{1, 3}},
	"and":              {predicate.And(predicate.Equal("active", true), predicate.Greater("age", int32(30))), []int32{1, 2}},
	"or":               {predicate.Or(predicate.Equal("name", "Ada"), predicate.Equal("age", int32(41))), []int32{1, 3}},
	"not":              {predicate.Not(predicate.Equal("active", true)), []int32{3, 4}},
	"true":             {predicate.True(), []int32{1, 2, 3, 4, 5}},
	"false":            {predicate.False(), []int32{}},
	"words":            {predicate.SQL("age > 40 AND name LIKE 'A%'"), []int32{3}},
}

// checkSelected asks for keys, values and entries of every predicate above.
func checkSelected(t *testing.T, m *hazelcast.Map) {
	t.Helper()
	for what, expected := range selected {
		keys, err := m.GetKeySetWithPredicate(ctx, expected.predicate)
		must(t, err)
		found := []int32{}
		for _, key := range keys {
			found = append(found, key.(int32))
		}
		sort.Slice(found, func(i, j int) bool { return found[i] < found[j] })
		equal(t, expected.keys, found, nil)
		values, err := m.GetValuesWithPredicate(ctx, expected.predicate)
		must(t, err)
		if len(values) != len(expected.keys) {
			t.Fatalf("%s: %d values", what, len(values))
		}
		entries, err := m.GetEntrySetWithPredicate(ctx, expected.predicate)
		must(t, err)
		for _, entry := range entries {
			equal(t, people[entry.Key.(int32)], asPerson(t, entry.Value), nil)
		}
	}
}

func TestPredicatesSelectInEveryFormat(t *testing.T) {
	client := peopleClient(t)
	for format := range formats {
		t.Run(format, func(t *testing.T) {
			checkSelected(t, fillPeople(t, client, "go-query-"+format, format))
		})
	}
}

func TestIndexesChangeNoAnswer(t *testing.T) {
	client := peopleClient(t)
	for format, value := range formats {
		t.Run(format, func(t *testing.T) {
			m, err := client.GetMap(ctx, "go-index-"+format)
			must(t, err)
			must(t, m.Set(ctx, int32(1), value(people[2])))
			for _, index := range []types.IndexConfig{
				{Type: types.IndexTypeHash, Attributes: []string{"name"}},
				{Type: types.IndexTypeSorted, Attributes: []string{"age"}},
				{Type: types.IndexTypeSorted, Attributes: []string{"active", "age"}},
				{Type: types.IndexTypeBitmap, Attributes: []string{"address.city"},
					BitmapIndexOptions: types.BitmapIndexOptions{UniqueKey: "__key"}},
			} {
				must(t, m.AddIndex(ctx, index))
			}
			fillPeople(t, client, "go-index-"+format, format)
			checkSelected(t, m)
		})
	}
}

func TestAggregatorsTellInEveryFormat(t *testing.T) {
	client := peopleClient(t)
	london := predicate.Equal("address.city", "London")
	for format := range formats {
		t.Run(format, func(t *testing.T) {
			m := fillPeople(t, client, "go-aggregate-"+format, format)
			tells := func(expected any, aggregator aggregate.Aggregator) {
				t.Helper()
				found, err := m.Aggregate(ctx, aggregator)
				must(t, err)
				if number, ok := expected.(float64); ok {
					if math.Abs(found.(float64)-number) > 1e-9 {
						t.Fatalf("expected %v, found %v", expected, found)
					}
					return
				}
				if fmt.Sprint(expected) != fmt.Sprint(found) {
					t.Fatalf("expected %v, found %v", expected, found)
				}
			}
			tells(int64(5), aggregate.CountAll())
			tells(int64(5), aggregate.Count("name"))
			tells(8.25, aggregate.DoubleSum("height"))
			tells(1.65, aggregate.DoubleAverage("height"))
			tells(int64(1)<<40+107, aggregate.LongSum("balance"))
			tells(float64(int64(1)<<40+107)/5, aggregate.LongAverage("balance"))
			tells(85, aggregate.Max("age"))
			tells(20, aggregate.Min("age"))
			tells("Édith", aggregate.Max("name"))
			tells("Ada", aggregate.Min("name"))
			if format != "json" {
				tells(int64(229), aggregate.IntSum("age"))
				tells(45.8, aggregate.IntAverage("age"))
			}
			found, err := m.AggregateWithPredicate(ctx, aggregate.CountAll(), london)
			equal(t, any(int64(2)), found, err)
			cities, err := m.Aggregate(ctx, aggregate.DistinctValues("address.city"))
			must(t, err)
			names := []string{}
			// The client's own kind of slice.
			for set, i := reflect.ValueOf(cities), 0; i < set.Len(); i++ {
				names = append(names, set.Index(i).Interface().(string))
			}
			sort.Strings(names)
			equal(t, []string{"London", "Oslo", "Paris"}, names, nil)
			nobody, err := m.AggregateWithPredicate(ctx, aggregate.Max("age"), predicate.False())
			equal(t, nil, nobody, err)
		})
	}
}

func TestListenersHearOfWhatThePredicateSelects(t *testing.T) {
	client := peopleClient(t)
	for format, value := range formats {
		t.Run(format, func(t *testing.T) {
			m, err := client.GetMap(ctx, "go-listener-"+format)
			must(t, err)
			var lock sync.Mutex
			heard := map[int32][]string{}
			count := 0
			hear := func(what string) func(*hazelcast.EntryNotified) {
				return func(event *hazelcast.EntryNotified) {
					lock.Lock()
					defer lock.Unlock()
					key := event.Key.(int32)
					heard[key] = append(heard[key], what)
					count++
				}
			}
			_, err = m.AddListenerWithPredicate(ctx, hazelcast.MapListener{
				EntryAdded: hear("added"), EntryUpdated: hear("updated"), EntryRemoved: hear("removed"),
			}, predicate.Greater("age", int32(40)), true)
			must(t, err)
			for key, p := range people {
				must(t, m.Set(ctx, key, value(p)))
			}
			must(t, m.Set(ctx, int32(3), value(people[1])))
			must(t, m.Set(ctx, int32(4), value(people[2])))
			must(t, m.Set(ctx, int32(1), value(people[4])))
			_, err = m.Remove(ctx, int32(2))
			must(t, err)
			expected := map[int32][]string{
				1: {"added"}, 2: {"added", "removed"}, 3: {"added", "removed"}, 4: {"added", "updated"},
			}
			eventually(t, "seven events", func() bool {
				lock.Lock()
				defer lock.Unlock()
				return count >= 7 && reflect.DeepEqual(expected, heard)
			})
		})
	}
}

func TestRemoveAllRemovesWhatIsSelected(t *testing.T) {
	m := ownMap(t)
	fill(t, m, 100)
	must(t, m.RemoveAll(ctx, predicate.GreaterOrEqual("__key", int64(10))))
	size, err := m.Size(ctx)
	equal(t, 10, size, err)
}
