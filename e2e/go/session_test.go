// Sessions: who is let in, what a client learns, what is refused, and that a client comes back after a restart.

package e2e

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/hzerrors"
	"github.com/hazelcast/hazelcast-go-client/types"
)

func TestAWrongClusterNameIsRefused(t *testing.T) {
	config := clientConfig(shared.address)
	config.Cluster.Name = "somewhere else"
	config.Cluster.ConnectionStrategy.Timeout = types.Duration(200 * time.Millisecond)
	if _, err := hazelcast.StartNewClientWithConfig(ctx, config); err == nil {
		t.Fatal("expected a refusal")
	}
}

func TestPasswordsAreChecked(t *testing.T) {
	if realHazelcast {
		t.Skip("passwords need a licence in Hazelcast")
	}
	guarded, err := startMember(0, "member-with-password.yaml")
	must(t, err)
	defer guarded.stop()
	config := clientConfig(guarded.address)
	config.Cluster.Security.Credentials.Username = "ada"
	config.Cluster.Security.Credentials.Password = "correct horse"
	client, err := hazelcast.StartNewClientWithConfig(ctx, config)
	must(t, err)
	must(t, client.Shutdown(ctx))
	config.Cluster.Security.Credentials.Password = "wrong"
	config.Cluster.ConnectionStrategy.Timeout = types.Duration(200 * time.Millisecond)
	if _, err := hazelcast.StartNewClientWithConfig(ctx, config); err == nil {
		t.Fatal("expected a refusal")
	}
}

func TestWhatIsNotServedIsRefusedByNameAndTheConnectionLivesOn(t *testing.T) {
	if realHazelcast {
		t.Skip("Hazelcast serves these")
	}
	m := ownMap(t)
	_, err := m.ExecuteOnKey(ctx, "some processor", "k")
	if !errors.Is(err, hzerrors.ErrUnsupportedOperation) || !strings.Contains(err.Error(), "Map.executeOnKey") {
		t.Fatalf("expected an unsupported operation error that names the message, found %v", err)
	}
	must(t, m.Set(ctx, "k", int64(1)))
}

func TestDistributedObjectsAreListedAndAnnounced(t *testing.T) {
	client := connect(t, clientConfig(shared.address))
	var mutex sync.Mutex
	heard := map[string]bool{}
	_, err := client.AddDistributedObjectListener(ctx, func(event hazelcast.DistributedObjectNotified) {
		mutex.Lock()
		defer mutex.Unlock()
		if event.ObjectName == t.Name() {
			heard[string(event.EventType)] = true
		}
	})
	must(t, err)
	other := connect(t, clientConfig(shared.address))
	m := mapOf(t, other)
	must(t, m.Set(ctx, "k", int64(1)))
	objects, err := client.GetDistributedObjectsInfo(ctx)
	must(t, err)
	listed := false
	for _, object := range objects {
		listed = listed || object.Name == t.Name()
	}
	if !listed {
		t.Fatal("the map is not listed")
	}
	must(t, m.Destroy(ctx))
	eventually(t, "created and destroyed are told", func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return len(heard) == 2
	})
}

func TestAClientReconnectsAfterTheMemberRestartsOnItsPort(t *testing.T) {
	first, err := startMember(0, "member.yaml")
	must(t, err)
	port, err := strconv.Atoi(strings.TrimPrefix(first.address, "127.0.0.1:"))
	must(t, err)
	m := mapOf(t, connect(t, clientConfig(first.address)))
	heard := &recorder{}
	_, err = m.AddListener(ctx, hazelcast.MapListener{EntryAdded: heard.note("added")}, false)
	must(t, err)
	must(t, m.Set(ctx, "before", int64(1)))
	heard.expect(t, "added before <nil> <nil> 1")
	first.stop()
	second, err := startMember(port, "member.yaml")
	must(t, err)
	defer second.stop()
	eventually(t, "the client writes again and hears of it", func() bool {
		key := "after " + strconv.FormatInt(time.Now().UnixNano(), 10)
		if err := m.Set(ctx, key, int64(1)); err != nil {
			return false
		}
		heard.mutex.Lock()
		defer heard.mutex.Unlock()
		return len(heard.events) > 1
	})
}
