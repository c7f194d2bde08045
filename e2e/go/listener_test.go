// Entry listeners, and the near cache that lives by invalidations.

package e2e

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/nearcache"
)

// recorder keeps the events that arrive, in order.
type recorder struct {
	mutex  sync.Mutex
	events []string
}

func (r *recorder) note(kind string) func(*hazelcast.EntryNotified) {
	return func(event *hazelcast.EntryNotified) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.events = append(r.events, fmt.Sprint(kind, " ", event.Key, " ", event.OldValue, " ", event.Value, " ", event.NumberOfAffectedEntries))
	}
}

func (r *recorder) listener() hazelcast.MapListener {
	return hazelcast.MapListener{
		EntryAdded: r.note("added"), EntryUpdated: r.note("updated"), EntryRemoved: r.note("removed"),
		EntryEvicted: r.note("evicted"), EntryExpired: r.note("expired"),
		MapCleared: r.note("cleared"), MapEvicted: r.note("all evicted"),
	}
}

func (r *recorder) expect(t *testing.T, expected ...string) {
	t.Helper()
	found := func() []string {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		return append([]string{}, r.events...)
	}
	deadline := time.Now().Add(limit)
	for !reflect.DeepEqual(append([]string{}, expected...), found()) {
		if time.Now().After(deadline) {
			t.Fatalf("expected %q, found %q", expected, found())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestChangesArriveInOrderWithValues(t *testing.T) {
	m := ownMap(t)
	heard := &recorder{}
	_, err := m.AddListener(ctx, heard.listener(), true)
	must(t, err)
	must(t, m.Set(ctx, "a", int64(1)))
	must(t, m.Set(ctx, "a", int64(2)))
	_, err = m.Remove(ctx, "a")
	must(t, err)
	must(t, m.Set(ctx, "a", int64(3)))
	_, err = m.Evict(ctx, "a")
	must(t, err)
	heard.expect(t, "added a <nil> 1 1", "updated a 1 2 1", "removed a 2 <nil> 1", "added a <nil> 3 1", "evicted a 3 <nil> 1")
}

func TestValuesStayAwayWhenNotAskedFor(t *testing.T) {
	m := ownMap(t)
	heard := &recorder{}
	_, err := m.AddListener(ctx, heard.listener(), false)
	must(t, err)
	must(t, m.Set(ctx, "a", int64(1)))
	must(t, m.Set(ctx, "a", int64(2)))
	heard.expect(t, "added a <nil> <nil> 1", "updated a <nil> <nil> 1")
}

func TestAListenerOfOneKeyHearsOfThatKeyAlone(t *testing.T) {
	m := ownMap(t)
	heard := &recorder{}
	_, err := m.AddListenerWithKey(ctx, heard.listener(), "mine", true)
	must(t, err)
	must(t, m.Set(ctx, "other", int64(1)))
	must(t, m.Set(ctx, "mine", int64(2)))
	heard.expect(t, "added mine <nil> 2 1")
}

func TestClearAndEvictAllAreOneEventWithACount(t *testing.T) {
	m := ownMap(t)
	heard := &recorder{}
	_, err := m.AddListener(ctx, hazelcast.MapListener{MapCleared: heard.note("cleared"), MapEvicted: heard.note("all evicted")}, false)
	must(t, err)
	fill(t, m, 10)
	must(t, m.Clear(ctx))
	fill(t, m, 5)
	must(t, m.EvictAll(ctx))
	heard.expect(t, "cleared <nil> <nil> <nil> 10", "all evicted <nil> <nil> <nil> 5")
}

func TestExpiryIsToldWithoutAnyoneReading(t *testing.T) {
	m := ownMap(t)
	heard := &recorder{}
	_, err := m.AddListener(ctx, hazelcast.MapListener{EntryExpired: heard.note("expired")}, true)
	must(t, err)
	must(t, m.SetWithTTL(ctx, "a", int64(1), time.Second))
	heard.expect(t, "expired a 1 <nil> 1")
}

func TestARemovedListenerHearsNothing(t *testing.T) {
	m := ownMap(t)
	silent, loud := &recorder{}, &recorder{}
	id, err := m.AddListener(ctx, silent.listener(), true)
	must(t, err)
	_, err = m.AddListener(ctx, loud.listener(), true)
	must(t, err)
	must(t, m.RemoveListener(ctx, id))
	must(t, m.Set(ctx, "a", int64(1)))
	loud.expect(t, "added a <nil> 1 1")
	silent.expect(t)
}

func TestANearCacheFollowsTheChangesOfOthers(t *testing.T) {
	config := clientConfig(shared.address)
	config.AddNearCache(nearcache.Config{Name: t.Name()})
	near := mapOf(t, connect(t, config))
	writer := ownMap(t)
	fill(t, writer, 100)
	for round := 0; round < 2; round++ {
		for i := int64(0); i < 100; i++ {
			found, err := near.Get(ctx, i)
			equal(t, i*i, found, err)
		}
	}
	if hits := near.LocalMapStats().NearCacheStats.Hits; hits < 50 {
		t.Fatalf("expected the second round to come mostly from the near cache, found %d hits", hits)
	}
	follows := func(key int64, expected any) {
		t.Helper()
		eventually(t, "the near cache forgot the old value", func() bool {
			found, err := near.Get(ctx, key)
			return err == nil && found == expected
		})
	}
	must(t, writer.Set(ctx, int64(7), int64(-7)))
	follows(7, int64(-7))
	must(t, writer.Delete(ctx, int64(8)))
	follows(8, nil)
	must(t, writer.Clear(ctx))
	follows(9, nil)
}
