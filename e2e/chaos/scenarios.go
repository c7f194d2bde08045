// What goes wrong, by name. Each scenario is one that found defects in other systems; when it is over, all members run and all links are whole.

package main

import (
	"fmt"
	"math/rand"
	"strings"
	"time"
)

// scenario is what happens during one history.
type scenario struct {
	name string
	// cuts tells that links are cut, which needs namespaces.
	cuts  bool
	fault func(n *nemesis) error
}

var scenarios = []scenario{
	// An ordinary election, and a new leader that reads before its first entry is agreed on.
	{"kill-leader", false, func(n *nemesis) error { return n.replace(n.leader(), 0) }},
	{"kill-any", false, func(n *nemesis) error { return n.replace(n.any(), n.between(0, 3_000)) }},
	// A pause during a read; a leader that wakes beyond its lease and believes that it leads.
	{"pause-leader", false, func(n *nemesis) error { return n.pause(n.between(3_000, 5_000), n.leader()) }},
	// Pauses about as long as a lease.
	{"pauses", false, pauses},
	// Nobody can be agreed with: neither writes nor reads.
	{"pause-majority", false, func(n *nemesis) error { return n.pause(n.between(2_000, 4_000), n.majority()...) }},
	// A minority that clients still reach: reads by lease, locks there.
	{"isolate-leader", true, func(n *nemesis) error { return n.isolate(n.leader(), false) }},
	{"isolate-leader-from-clients", true, func(n *nemesis) error { return n.isolate(n.leader(), true) }},
	// The leader is heard and hears nothing; it hears and is not heard.
	{"deaf-leader", true, func(n *nemesis) error { return n.oneWay(true) }},
	{"mute-leader", true, func(n *nemesis) error { return n.oneWay(false) }},
	// A-B-C: A and C do not reach each other, B reaches both.
	{"bridge", true, bridge},
	{"flapping", true, flapping},
	// Leadership and data are handed over under load: a lease read during a transfer.
	{"join-and-leave", false, joinAndLeave},
	{"leave-and-replace", false, leaveAndReplace},
	// The log has gone when a member joins: it is brought a snapshot, with locks that are held.
	{"join-by-snapshot", false, joinBySnapshot},
	// As an upgrade does it: one member after the other.
	{"rolling", false, rolling},
	// Voters change while the network is cut.
	{"join-while-cut", true, joinWhileCut},
	// One is isolated while another starts anew.
	{"restart-while-isolated", true, restartWhileIsolated},
	// Kill, pause and cut, one upon the other.
	{"mixed", true, mixed},
}

// nemesis injects faults.
type nemesis struct {
	cluster *cluster
	random  *rand.Rand
	// crowds are the clients of all histories that have this fault.
	crowds []*crowd
	// caller is a client of the nemesis's own.
	caller client
	say    func(format string, words ...interface{})
	// failed is the first thing that could not be found out.
	failed error
}

func (n *nemesis) between(least, most int) time.Duration {
	return time.Duration(least+n.random.Intn(most-least)) * time.Millisecond
}

// any is some member.
func (n *nemesis) any() *member {
	running := n.cluster.running()
	return running[n.random.Intn(len(running))]
}

// workload is that of one of the histories.
func (n *nemesis) workload() *workload { return n.crowds[n.random.Intn(len(n.crowds))].workload.Load() }

// leader leads one of the keys.
func (n *nemesis) leader() *member {
	m, err := n.cluster.leaderOf(n.workload().register(n.random.Intn(registerKeys)))
	if err != nil {
		n.failed = err
		return n.any()
	}
	return m
}

// majority is so many members that the others have none.
func (n *nemesis) majority() []*member {
	running := n.cluster.running()
	n.random.Shuffle(len(running), func(a, b int) { running[a], running[b] = running[b], running[a] })
	return running[:len(running)/2+1]
}

// replace kills a member; another one takes its place.
func (n *nemesis) replace(m *member, after time.Duration) error {
	_, err := n.renew(m, after)
	return err
}

// renew is as replace, and gives the new member back.
func (n *nemesis) renew(m *member, after time.Duration) (*member, error) {
	n.say("member %d is killed, and another one takes its place after %s", m.number, after)
	n.cluster.kill(m)
	time.Sleep(after)
	return n.cluster.start(m.number)
}

func (n *nemesis) pause(long time.Duration, members ...*member) error {
	// What a member is asked while it is paused it answers at once when it goes on, before it hears of anything.
	for _, m := range members {
		forget, err := n.watch(m)
		if err != nil {
			return err
		}
		defer forget()
	}
	for _, m := range members {
		n.say("member %d is paused for %s", m.number, long)
		n.cluster.pause(m)
	}
	time.Sleep(long)
	for _, m := range members {
		n.cluster.resume(m)
	}
	return nil
}

func pauses(n *nemesis) error {
	for round := 0; round < 5; round++ {
		if err := n.pause(n.between(200, 1_800), n.any()); err != nil {
			return err
		}
		time.Sleep(n.between(0, 600))
	}
	return nil
}

// cutOff cuts the links between a member and all others.
func (n *nemesis) cutOff(m *member, fromClients bool) error {
	for _, other := range n.cluster.running() {
		if other == m {
			continue
		}
		if err := n.cluster.network.cutBoth(m.number, other.number); err != nil {
			return err
		}
	}
	if fromClients {
		return n.cluster.network.cutBoth(m.number, clients)
	}
	return nil
}

func (n *nemesis) isolate(m *member, fromClients bool) error {
	long := n.between(3_000, 6_000)
	n.say("member %d is cut off for %s, from clients too: %v", m.number, long, fromClients)
	forget, err := n.watch(m)
	if err != nil {
		return err
	}
	defer forget()
	if err := n.cutOff(m, fromClients); err != nil {
		return err
	}
	time.Sleep(long)
	return n.cluster.network.heal()
}

func (n *nemesis) oneWay(isDeaf bool) error {
	m, long := n.leader(), n.between(3_000, 6_000)
	n.say("member %d hears nobody: %v, else is not heard, for %s", m.number, isDeaf, long)
	forget, err := n.watch(m)
	if err != nil {
		return err
	}
	defer forget()
	for _, other := range n.cluster.running() {
		if other == m {
			continue
		}
		from, to := m.number, other.number
		if isDeaf {
			from, to = to, from
		}
		if err := n.cluster.network.cut(from, to); err != nil {
			return err
		}
	}
	time.Sleep(long)
	return n.cluster.network.heal()
}

func bridge(n *nemesis) error {
	running := n.cluster.running()
	n.random.Shuffle(len(running), func(a, b int) { running[a], running[b] = running[b], running[a] })
	half, long := len(running)/2, n.between(4_000, 7_000)
	// The one in the middle is the bridge.
	for _, left := range running[:half] {
		for _, right := range running[half+1:] {
			n.say("members %d and %d do not reach each other for %s", left.number, right.number, long)
			if err := n.cluster.network.cutBoth(left.number, right.number); err != nil {
				return err
			}
		}
	}
	time.Sleep(long)
	return n.cluster.network.heal()
}

func flapping(n *nemesis) error {
	for round := 0; round < 8; round++ {
		one, other := n.any(), n.any()
		if one == other {
			continue
		}
		if err := n.cluster.network.cutBoth(one.number, other.number); err != nil {
			return err
		}
		time.Sleep(n.between(100, 1_200))
		if n.random.Intn(2) == 0 {
			if err := n.cluster.network.heal(); err != nil {
				return err
			}
			time.Sleep(n.between(0, 500))
		}
	}
	return n.cluster.network.heal()
}

// vacant is a place at which no member has been.
func (n *nemesis) vacant() int {
	n.cluster.lock.Lock()
	defer n.cluster.lock.Unlock()
	number := 1
	for n.cluster.members[number] != nil {
		number++
	}
	return number
}

func joinAndLeave(n *nemesis) error {
	m, err := n.cluster.start(n.vacant())
	if err != nil {
		return err
	}
	n.say("member %d has joined", m.number)
	time.Sleep(n.between(500, 3_000))
	leaves := n.any()
	n.say("member %d leaves", leaves.number)
	return n.cluster.leave(leaves)
}

func leaveAndReplace(n *nemesis) error {
	m := n.leader()
	n.say("member %d leaves", m.number)
	if err := n.cluster.leave(m); err != nil {
		return err
	}
	time.Sleep(n.between(0, 1_000))
	_, err := n.cluster.start(m.number)
	return err
}

// joinBySnapshot has a lock that is held throughout be led by a member that was brought it by a snapshot: until it is, whoever leads it is replaced,
// after more was written to the groups of some keys than their logs keep.
func joinBySnapshot(n *nemesis) error {
	w := n.workload()
	kept := w.lock(lockKeys)
	brought := map[*member]bool{}
	for {
		leads, err := n.cluster.leaderOf(kept)
		if err != nil {
			return err
		}
		if brought[leads] {
			break
		}
		for _, key := range []string{kept, w.lock(0), w.register(0), w.register(1)} {
			if err := n.fill(key); err != nil {
				return err
			}
		}
		started, err := n.renew(leads, 0)
		if err != nil {
			return err
		}
		brought[started] = true
	}
	// Others try to take the lock, and what the new members are to lead is handed to them one group at a time.
	time.Sleep(n.between(2_000, 4_000))
	return nil
}

// fill writes 20 MiB to the group of a key, more than its log keeps.
func (n *nemesis) fill(key string) error {
	filler, group := "", n.cluster.groupOf(key)
	for number := 0; filler == ""; number++ {
		if candidate := fmt.Sprintf("filler-%d", number); n.cluster.groupOf(candidate) == group {
			filler = candidate
		}
	}
	value := strings.Repeat("x", 512<<10)
	for written := 0; written < 40; written++ {
		if r := n.caller.do(op{Kind: "set", Map: "filler", Key: filler, Value: value}); r.Outcome != acknowledged {
			return fmt.Errorf("filling a log: %s", r.Error)
		}
	}
	return nil
}

func rolling(n *nemesis) error {
	for _, m := range n.cluster.running() {
		n.say("member %d leaves, and another one takes its place", m.number)
		if err := n.cluster.leave(m); err != nil {
			return err
		}
		if _, err := n.cluster.start(m.number); err != nil {
			return err
		}
	}
	return nil
}

func joinWhileCut(n *nemesis) error {
	m := n.any()
	n.say("member %d is killed, another one joins while a link is cut", m.number)
	n.cluster.kill(m)
	started, err := n.cluster.launch(m.number)
	if err != nil {
		return err
	}
	time.Sleep(n.between(0, 700))
	one, other := n.any(), n.any()
	if one != other {
		n.say("members %d and %d do not reach each other", one.number, other.number)
		if err := n.cluster.network.cutBoth(one.number, other.number); err != nil {
			return err
		}
	}
	time.Sleep(n.between(1_000, 4_000))
	if err := n.cluster.network.heal(); err != nil {
		return err
	}
	return n.cluster.awaitReady(started)
}

func restartWhileIsolated(n *nemesis) error {
	isolated := n.leader()
	var dies *member
	for dies == nil || dies == isolated {
		dies = n.any()
	}
	n.say("member %d is cut off, member %d is killed and another one takes its place", isolated.number, dies.number)
	if err := n.cutOff(isolated, false); err != nil {
		return err
	}
	time.Sleep(n.between(500, 3_000))
	n.cluster.kill(dies)
	started, err := n.cluster.launch(dies.number)
	if err != nil {
		return err
	}
	time.Sleep(n.between(500, 2_000))
	if err := n.cluster.network.heal(); err != nil {
		return err
	}
	return n.cluster.awaitReady(started)
}

func mixed(n *nemesis) error {
	for round := 0; round < 3; round++ {
		var err error
		switch n.random.Intn(5) {
		case 0:
			err = n.replace(n.leader(), n.between(0, 1_000))
		case 1:
			err = n.pause(n.between(500, 3_000), n.any())
		case 2:
			err = n.isolate(n.leader(), n.random.Intn(2) == 0)
		case 3:
			err = flapping(n)
		case 4:
			paused := n.leader()
			n.say("member %d is paused, then cut off, then goes on", paused.number)
			n.cluster.pause(paused)
			time.Sleep(n.between(500, 1_500))
			err = n.cutOff(paused, false)
			n.cluster.resume(paused)
			time.Sleep(n.between(1_000, 3_000))
			if err == nil {
				err = n.cluster.network.heal()
			}
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}
