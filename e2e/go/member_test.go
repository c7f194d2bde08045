// Starts and ends the member under test: the real program in a process of its own, on an ephemeral loopback port.

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/logger"
	"github.com/hazelcast/hazelcast-go-client/types"
)

var readyLine = regexp.MustCompile(`^ready: .*127\.0\.0\.1:(\d+)`)
var servesHTTPLine = regexp.MustCompile(`^serves: HTTP on (127\.0\.0\.1:\d+)`)
var servesPostgresLine = regexp.MustCompile(`^serves: PostgreSQL on (127\.0\.0\.1:\d+)`)

// realHazelcast tells whether the suite runs against the original, which checks its expectations.
var realHazelcast = os.Getenv("FILBERT_E2E_TARGET") == "hazelcast"

// members of the cluster that most tests use.
var members = membersWanted()

// shared is the member that most tests use. With FILBERT_E2E_MEMBERS=3 it is the first of a cluster of three.
var shared *member

// limit turns a wait that would never end into a failure.
const limit = 60 * time.Second

// ctx is for calls that nothing cancels.
var ctx = context.Background()

type member struct {
	process *exec.Cmd
	address string
	// postgres is the address for PostgreSQL's drivers, http the one of the console and of what is told of the cluster.
	postgres, http string
}

// startMember runs the program on the port, 0 for any, and returns when it serves.
func startMember(port int, config string, more ...string) (*member, error) {
	var command []string
	if err := json.Unmarshal([]byte(os.Getenv("FILBERT_E2E_MEMBER")), &command); err != nil || len(command) == 0 {
		return nil, fmt.Errorf("FILBERT_E2E_MEMBER is not set; run `cargo xtask e2e go`")
	}
	path, err := filepath.Abs(filepath.Join("..", "shared", config))
	if err != nil {
		return nil, err
	}
	arguments := append(command[1:], "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--config", path)
	arguments = append(arguments, more...)
	process := exec.Command(command[0], arguments...)
	output, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	process.Stderr = process.Stdout
	if err := process.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(output)
	said, postgres, http := "", "", ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		if found := servesPostgresLine.FindStringSubmatch(lines.Text()); found != nil {
			postgres = found[1]
		}
		if found := servesHTTPLine.FindStringSubmatch(lines.Text()); found != nil {
			http = found[1]
		}
		if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
			go func() {
				for lines.Scan() {
				}
			}()
			return &member{process: process, address: "127.0.0.1:" + found[1], postgres: postgres, http: http}, nil
		}
	}
	_ = process.Wait()
	return nil, fmt.Errorf("the member did not become ready: %s", said)
}

// stop ends the member as an operator does.
func (m *member) stop() {
	_ = m.process.Process.Signal(syscall.SIGTERM)
	_ = m.process.Wait()
}

// kill ends the member at once.
func (m *member) kill() {
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
}

// freeAddresses are as many as wanted that are free now. Their ports are below the ones that the operating system gives to
// connections: such a port could be taken by any connection before its member listens.
func freeAddresses(count int) []string {
	var addresses []string
	random := rand.New(rand.NewSource(time.Now().UnixNano()))
	for len(addresses) < count {
		address := fmt.Sprintf("127.0.0.1:%d", 15_000+random.Intn(17_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			defer listener.Close()
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// startCluster starts so many members at once; those that have started come back also with an error.
func startCluster(count int) ([]*member, error) {
	addresses := freeAddresses(count)
	starting, errs := make([]*member, count), make(chan error, count)
	for n, address := range addresses {
		go func(n int, address string) {
			var err error
			starting[n], err = startMember(0, "member.yaml", "--join", strings.Join(addresses, ","), "--member-listen", address)
			errs <- err
		}(n, address)
	}
	var err error
	for range addresses {
		if failed := <-errs; failed != nil {
			err = failed
		}
	}
	var started []*member
	for _, each := range starting {
		if each != nil {
			started = append(started, each)
		}
	}
	return started, err
}

// awaitPlaced waits until every group is led by the member that is to lead it. Before that leaders move, and what a listener hears
// meanwhile may be counted otherwise.
func awaitPlaced(m *member) error {
	type group struct {
		Group    string
		Leader   uint64
		Wanted   []uint64
		Changing bool
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var status struct{ Groups []group }
		response, err := http.Get("http://" + m.http + "/_filbert/cluster")
		if err == nil {
			err = json.NewDecoder(response.Body).Decode(&status)
			response.Body.Close()
		}
		placed := err == nil && len(status.Groups) > 0
		for _, each := range status.Groups {
			led := each.Group == "registry" || len(each.Wanted) > 0 && each.Leader == each.Wanted[0]
			placed = placed && !each.Changing && led
		}
		if placed {
			return nil
		}
		if time.Since(begun) > limit {
			return fmt.Errorf("leaders still move: %v %v", status, err)
		}
	}
}

func membersWanted() int {
	count, err := strconv.Atoi(os.Getenv("FILBERT_E2E_MEMBERS"))
	if err != nil {
		return 1
	}
	return count
}

// startShared starts the member that most tests use, and those of its cluster.
func startShared() ([]*member, error) {
	if members > 1 {
		started, err := startCluster(members)
		if err == nil {
			err = awaitPlaced(started[0])
		}
		return started, err
	}
	alone, err := startMember(0, "member.yaml")
	if err != nil {
		return nil, err
	}
	return []*member{alone}, nil
}

func TestMain(m *testing.M) {
	started, err := startShared()
	status := 1
	if err == nil {
		shared = started[0]
		status = m.Run()
	} else {
		fmt.Println(err)
	}
	if len(started) == 1 {
		started[0].stop()
	} else {
		// At once: the last two of three cannot leave in order before the first is taken for dead.
		for _, each := range started {
			each.kill()
		}
	}
	os.Exit(status)
}

// clientConfig is a configuration in which the address alone is set.
func clientConfig(address string) hazelcast.Config {
	config := hazelcast.NewConfig()
	config.Cluster.Network.SetAddresses(address)
	config.Cluster.ConnectionStrategy.Timeout = types.Duration(30 * time.Second)
	config.Logger.Level = logger.ErrorLevel
	return config
}

// connect starts a client that ends with the test.
func connect(t *testing.T, config hazelcast.Config) *hazelcast.Client {
	t.Helper()
	client, err := hazelcast.StartNewClientWithConfig(ctx, config)
	must(t, err)
	t.Cleanup(func() { _ = client.Shutdown(ctx) })
	return client
}

// ownMap is a map of the test's own, through a client of its own.
func ownMap(t *testing.T) *hazelcast.Map {
	t.Helper()
	return mapOf(t, connect(t, clientConfig(shared.address)))
}

func mapOf(t *testing.T, client *hazelcast.Client) *hazelcast.Map {
	t.Helper()
	m, err := client.GetMap(ctx, t.Name())
	must(t, err)
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check is true.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("did not come true: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
