// What clients do while faults are injected: all operations of maps, and updates by SQL, on few keys, every value written once.

package main

import (
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"time"
)

const (
	registerKeys = 6
	lockKeys     = 2
	// holdMillis is how long a lock is held at most, while its holder goes on.
	holdMillis = 2_500
	// recoveryLimit bounds how long clients may go unserved when all faults are over.
	recoveryLimit = 90 * time.Second
)

// workload is the maps and keys of one history.
type workload struct {
	registers, locks, ledger string
	prefix                   string
	// sql tells whether there are updates by SQL.
	sql bool
}

func (s *settings) newWorkload(prefix string) *workload {
	return &workload{registers: "registers", locks: "locks", ledger: "ledger", prefix: prefix, sql: s.sql}
}

func (w *workload) register(n int) string { return fmt.Sprintf("%s-register-%d", w.prefix, n) }

func (w *workload) lock(n int) string { return fmt.Sprintf("%s-lock-%d", w.prefix, n) }

// process is one client of a history: what it does, it does one after the other.
type process struct {
	number   int
	client   client
	history  *history
	workload *atomic.Pointer[workload]
	random   *rand.Rand
	// takesLocks is false for a client with one connection: its locks go with that.
	takesLocks bool
	pace       time.Duration
	written    int
	// seen is the last value that was read or written, by key.
	seen map[string]string
	// held is the lock that it has, or may have, and until when.
	held      string
	heldUntil time.Duration
	// acknowledged is the time of the last operation that was.
	acknowledged atomic.Int64
	count        *atomic.Int64
}

// run makes operations until it is told to stop, and gives back what it holds.
func (p *process) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			p.release(p.history.now() + recoveryLimit)
			return
		case <-time.After(time.Duration(p.random.Int63n(int64(2 * p.pace)))):
			p.step()
		}
	}
}

func (p *process) step() {
	if p.held != "" && p.history.now() > p.heldUntil {
		p.release(0)
		return
	}
	w := p.workload.Load()
	key := w.register(p.random.Intn(registerKeys))
	p.written++
	value := fmt.Sprintf("%d.%d", p.number, p.written)
	switch choice := p.random.Intn(100); {
	case choice < 25:
		p.note(key, p.make(op{Kind: "get", Map: w.registers, Key: key}), "")
	case choice < 38:
		p.note(key, p.make(op{Kind: "put", Map: w.registers, Key: key, Value: value}), value)
	case choice < 48:
		p.note(key, p.make(op{Kind: "set", Map: w.registers, Key: key, Value: value}), value)
	case choice < 56:
		p.make(op{Kind: "putIfAbsent", Map: w.registers, Key: key, Value: value})
	case choice < 68:
		expected := p.seen[key]
		if expected == "" {
			expected = "none"
		}
		p.note(key, p.make(op{Kind: "replaceIfSame", Map: w.registers, Key: key, Expected: expected, Value: value}), value)
	case choice < 74:
		p.make(op{Kind: "remove", Map: w.registers, Key: key})
	case choice < 80 && w.sql:
		if updated := p.make(op{Kind: "sqlUpdate", Map: w.registers, Key: key, Value: value}); updated.Truth {
			p.note(key, updated, value)
		}
	case choice < 89 && p.takesLocks && p.held == "":
		// One more is held throughout: see keeper.
		lock := w.lock(p.random.Intn(lockKeys + 1))
		wait := p.random.Intn(2) * p.random.Intn(1_000)
		taken := p.make(op{Kind: "tryLock", Map: w.locks, Key: lock, WaitMillis: wait})
		if taken.Truth || taken.Outcome == unknown {
			p.held = lock
			p.heldUntil = p.history.now() + time.Duration(p.random.Intn(holdMillis))*time.Millisecond
		}
	default:
		// A key that is written once, ever.
		p.make(op{Kind: "set", Map: w.ledger, Key: fmt.Sprintf("%s-%s", w.prefix, value), Value: value})
	}
}

// release gives the lock back; until that time it is tried again while the outcome is unknown, or once.
func (p *process) release(until time.Duration) {
	for p.held != "" {
		freed := p.make(op{Kind: "unlock", Map: p.workload.Load().locks, Key: p.held})
		if freed.Outcome == acknowledged {
			p.held = ""
		} else if p.history.now() >= until {
			return
		}
	}
}

func (p *process) note(key string, r result, written string) {
	if r.Outcome != acknowledged {
		return
	}
	if written == "" {
		written = r.Value
	}
	p.seen[key] = written
}

func (p *process) make(o op) result {
	r := p.history.make(p.number, p.client, o)
	if r.Outcome == acknowledged {
		p.acknowledged.Store(int64(p.history.now()))
	}
	p.count.Add(1)
	return r
}

// crowd is all clients of a history.
type crowd struct {
	history   *history
	processes []*process
	// workload is what they work on; it may be exchanged for another one.
	workload atomic.Pointer[workload]
	stop     chan struct{}
	done     sync.WaitGroup
	count    atomic.Int64
}

// startCrowd has threads of all clients begin, which make so many operations a second together, as long as they are answered at once.
func startCrowd(of []participant, w *workload, rate float64, random *rand.Rand) *crowd {
	c := &crowd{history: newHistory(), stop: make(chan struct{})}
	c.workload.Store(w)
	for _, each := range of {
		for thread := 0; thread < each.threads; thread++ {
			p := &process{
				number: c.history.client(fmt.Sprintf("%s.%d", each.name, thread)), client: each.client.caller(), history: c.history,
				workload: &c.workload, random: rand.New(rand.NewSource(random.Int63())), takesLocks: each.takesLocks,
				seen: map[string]string{}, count: &c.count,
			}
			c.processes = append(c.processes, p)
		}
	}
	for _, p := range c.processes {
		p.pace = time.Duration(float64(len(c.processes)) / rate * float64(time.Second))
	}
	for _, p := range c.processes {
		c.done.Add(1)
		go func(p *process) {
			defer c.done.Done()
			p.run(c.stop)
		}(p)
	}
	return c
}

// keep has one more client take a lock, and hold it until the function is called, whatever goes wrong meanwhile.
func (c *crowd) keep(caller client) (func(), error) {
	w := c.workload.Load()
	number := c.history.client("keeper")
	lock := op{Kind: "tryLock", Map: w.locks, Key: w.lock(lockKeys), WaitMillis: 5_000}
	for taken := (result{}); !taken.Truth; {
		if taken = c.history.make(number, caller, lock); taken.Outcome == unknown {
			return nil, fmt.Errorf("a lock cannot be taken before anything goes wrong: %s", taken.Error)
		}
	}
	return func() {
		unlock := op{Kind: "unlock", Map: w.locks, Key: w.lock(lockKeys)}
		until := c.history.now() + recoveryLimit
		for c.history.make(number, caller, unlock).Outcome != acknowledged && c.history.now() < until {
		}
	}, nil
}

// awaitServed waits until each client has had an operation acknowledged that ended after that time.
func (c *crowd) awaitServed(since time.Duration) error {
	deadline := c.history.now() + recoveryLimit
	for {
		waits := ""
		for _, p := range c.processes {
			if time.Duration(p.acknowledged.Load()) <= since {
				waits = c.history.names[p.number]
			}
		}
		if waits == "" {
			return nil
		}
		if c.history.now() > deadline {
			return fmt.Errorf("client %s is not served %s after the last fault is over", waits, recoveryLimit)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// end waits until so many operations were made, then has all clients stop.
func (c *crowd) end(operations int64) {
	for c.count.Load() < operations {
		time.Sleep(10 * time.Millisecond)
	}
	c.abandon()
}

// abandon has all clients stop.
func (c *crowd) abandon() {
	close(c.stop)
	c.done.Wait()
}

// participant is a client that takes part in histories, in each with so many threads.
type participant struct {
	name       string
	client     connected
	takesLocks bool
	threads    int
}

// clientsOf connects the clients of all languages to a cluster; the function ends them.
func clientsOf(settings *settings, c *cluster) ([]participant, func(), error) {
	var all []participant
	end := func() {
		var ended sync.WaitGroup
		for _, each := range all {
			ended.Add(1)
			go func(client connected) {
				defer ended.Done()
				client.stop()
			}(each.client)
		}
		ended.Wait()
	}
	if settings.sql {
		if err := mapRegisters(settings, c); err != nil {
			return nil, nil, err
		}
	}
	for _, each := range []struct {
		language  string
		unisocket bool
		threads   int
	}{
		{"go", false, 2}, {"go", true, 1}, {python, false, 2}, {java, false, 2}, {java, true, 1}, {rust, false, 2}, {rust, true, 1},
	} {
		name := each.language
		if each.unisocket {
			name += "-unisocket"
		}
		made, err := clientOf(settings, each.language, name, c.addresses(), each.unisocket)
		if err != nil {
			end()
			return nil, nil, fmt.Errorf("connecting %s: %w", name, err)
		}
		// The locks of a client with one connection go with that.
		all = append(all, participant{name: name, client: made, takesLocks: !each.unisocket, threads: each.threads})
	}
	return all, end, nil
}

func clientOf(settings *settings, language, name string, addresses []string, unisocket bool) (connected, error) {
	if language == "go" {
		return connect(name, addresses, unisocket)
	}
	w, err := settings.worker(language)
	if err != nil {
		return nil, err
	}
	return w.connect(name, addresses, unisocket)
}
