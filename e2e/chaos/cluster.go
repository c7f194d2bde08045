// The members under test: the real program, started, killed, paused and ended as operators and accidents do.

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

var readyLine = regexp.MustCompile(`^ready: .*?(\d+\.\d+\.\d+\.\d+:\d+)`)

// startLimit turns a start or an end that never comes into a failure.
const startLimit = 120 * time.Second

// member is one process of the program.
type member struct {
	// number is its place: its network, its addresses. One that takes a dead one's place has the same.
	number int
	// address is where clients reach it.
	address string
	process *exec.Cmd
	ended   chan struct{}
	// paused tells that it was stopped by a signal.
	paused bool
}

// cluster is the members that run, and those whose place is empty.
type cluster struct {
	program  []string
	network  *network
	logs     string
	join     string
	ports    map[int]int
	lock     sync.Mutex
	members  map[int]*member
	starts   int
	observer *workerClient
	// asks is the observer's thread.
	asks client
}

// startCluster starts so many members at once and returns when all of them serve.
func startCluster(settings *settings, network *network, count int, name string) (*cluster, error) {
	logs := filepath.Join(settings.out, name)
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	program := append([]string{}, settings.member...)
	if settings.replicas > 0 {
		program = append(program, "--replicas", fmt.Sprint(settings.replicas))
	}
	c := &cluster{program: program, network: network, logs: logs, ports: map[int]int{}, members: map[int]*member{}}
	var join []string
	for number := 1; number <= count; number++ {
		address, err := c.memberAddress(number)
		if err != nil {
			return nil, err
		}
		join = append(join, address)
	}
	c.join = strings.Join(join, ",")
	failed := make(chan error, count)
	for number := 1; number <= count; number++ {
		m, err := c.launch(number)
		if err != nil {
			c.stop()
			return nil, err
		}
		go func() { failed <- c.awaitReady(m) }()
	}
	for number := 1; number <= count; number++ {
		if err := <-failed; err != nil {
			c.stop()
			return nil, err
		}
	}
	w, err := settings.worker(python)
	if err == nil {
		c.observer, err = w.connect("observer", c.addresses(), false)
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	c.asks = c.observer.caller()
	return c, nil
}

// memberAddress is where others reach a member.
func (c *cluster) memberAddress(number int) (string, error) {
	if c.network.isOwn {
		return c.network.host(number) + ":5801", nil
	}
	if c.ports[number] == 0 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		c.ports[number] = listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("127.0.0.1:%d", c.ports[number]), nil
}

// start starts a member and returns when it serves.
func (c *cluster) start(number int) (*member, error) {
	m, err := c.launch(number)
	if err != nil {
		return nil, err
	}
	return m, c.awaitReady(m)
}

// launch starts a member at a place.
func (c *cluster) launch(number int) (*member, error) {
	at, err := c.memberAddress(number)
	if err != nil {
		return nil, err
	}
	port := "0"
	if c.network.isOwn {
		port = "5701"
	}
	words := append(append([]string{}, c.program...), "--listen", c.network.host(number)+":"+port, "--http", "off",
		"--postgres", "off", "--join", c.join, "--member-listen", at, "--log", memberLog())
	process, err := c.network.command(number, words)
	if err != nil {
		return nil, err
	}
	c.lock.Lock()
	c.starts++
	name := fmt.Sprintf("member-%d-start-%d.log", number, c.starts)
	c.lock.Unlock()
	log, err := os.Create(filepath.Join(c.logs, name))
	if err != nil {
		return nil, err
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	process.Stderr = log
	if err := process.Start(); err != nil {
		return nil, err
	}
	m := &member{number: number, process: process, ended: make(chan struct{})}
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(io.TeeReader(output, log))
		for lines.Scan() {
			if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
				ready <- found[1]
			}
		}
		_ = process.Wait()
		_ = log.Close()
		close(m.ended)
	}()
	c.lock.Lock()
	c.members[number] = m
	c.lock.Unlock()
	m.address = ""
	go func() {
		select {
		case address := <-ready:
			c.lock.Lock()
			m.address = address
			c.lock.Unlock()
		case <-m.ended:
		}
	}()
	return m, nil
}

func memberLog() string {
	if filter := os.Getenv("FILBERT_CHAOS_LOG"); filter != "" {
		return filter
	}
	return "info"
}

func (c *cluster) addressOf(m *member) string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return m.address
}

func (c *cluster) awaitReady(m *member) error {
	deadline := time.Now().Add(startLimit)
	for c.addressOf(m) == "" {
		select {
		case <-m.ended:
			return fmt.Errorf("member %d ended before it served, see %s", m.number, c.logs)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("member %d does not serve after %s, see %s", m.number, startLimit, c.logs)
		}
	}
	return nil
}

// running is the members that run, by place.
func (c *cluster) running() []*member {
	c.lock.Lock()
	defer c.lock.Unlock()
	var running []*member
	for number := 1; number < 250 && len(running) < len(c.members); number++ {
		if m := c.members[number]; m != nil {
			running = append(running, m)
		}
	}
	return running
}

// addresses is where clients reach the members that serve.
func (c *cluster) addresses() []string {
	var addresses []string
	for _, m := range c.running() {
		if address := c.addressOf(m); address != "" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// leaderOf is the member that leads a key, as clients are told; waits until that is a member that runs.
func (c *cluster) leaderOf(key string) (*member, error) {
	deadline := time.Now().Add(startLimit)
	for {
		result := c.asks.do(op{Kind: "leader", Key: key})
		for _, m := range c.running() {
			if result.Outcome == acknowledged && result.Value == c.addressOf(m) {
				return m, nil
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no member that runs leads %q after %s: %+v", key, startLimit, result)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// groupOf is the group of partitions that a key is in.
func (c *cluster) groupOf(key string) string {
	return c.asks.do(op{Kind: "group", Key: key}).Value
}

// kill ends a member as a power cut does.
func (c *cluster) kill(m *member) {
	_ = m.process.Process.Kill()
	<-m.ended
	c.forget(m)
}

// leave ends a member as an operator does, who waits until it has gone.
func (c *cluster) leave(m *member) error {
	_ = m.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.ended:
	case <-time.After(startLimit):
		return fmt.Errorf("member %d has not ended %s after SIGTERM, see %s", m.number, startLimit, c.logs)
	}
	c.forget(m)
	if code := m.process.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("member %d ended with status %d after SIGTERM, see %s", m.number, code, c.logs)
	}
	return nil
}

func (c *cluster) forget(m *member) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.members[m.number] == m {
		delete(c.members, m.number)
	}
}

// pause stops a member's threads, as a machine that swaps or a hypervisor does.
func (c *cluster) pause(m *member) {
	m.paused = true
	_ = m.process.Process.Signal(syscall.SIGSTOP)
}

// resume lets it go on.
func (c *cluster) resume(m *member) {
	m.paused = false
	_ = m.process.Process.Signal(syscall.SIGCONT)
}

// mend undoes what can be undone: links and pauses.
func (c *cluster) mend() error {
	for _, m := range c.running() {
		if m.paused {
			c.resume(m)
		}
	}
	return c.network.heal()
}

// stop ends everything.
func (c *cluster) stop() {
	_ = c.mend()
	if c.observer != nil {
		c.observer.stop()
	}
	for _, m := range c.running() {
		c.kill(m)
	}
}
