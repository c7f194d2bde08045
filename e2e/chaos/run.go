// Histories: clients at work, a scenario, the final reads, and the check. Several histories may have one fault in common: each has its own keys,
// threads of clients, record and check.

package main

import (
	"fmt"
	"math/rand"
	"path/filepath"
	"sync"
	"time"
)

// warmUp is how long clients work before something goes wrong.
const warmUp = 700 * time.Millisecond

// runScenario runs histories of one scenario on a cluster of its own, until there are so many or the time is over.
func runScenario(settings *settings, s scenario, seed int64, until time.Time) (*figures, error) {
	network, err := settings.newNetwork()
	if err != nil {
		return nil, err
	}
	all := newFigures()
	random := rand.New(rand.NewSource(seed))
	name := fmt.Sprintf("%s-%d", s.name, seed)
	c, err := startCluster(settings, network, settings.members, name)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	participants, end, err := clientsOf(settings, c)
	if err != nil {
		return nil, err
	}
	defer end()
	say := func(format string, words ...interface{}) {
		if settings.verbose {
			fmt.Printf("    %s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, words...))
		}
	}
	n := &nemesis{cluster: c, random: random, say: say, caller: participants[0].client.caller()}
	for first := 0; first < settings.histories && (first == 0 || time.Now().Before(until)); first += settings.atOnce {
		count := settings.histories - first
		if count > settings.atOnce {
			count = settings.atOnce
		}
		n.crowds = nil
		for number := first; number < first+count; number++ {
			w := settings.newWorkload(fmt.Sprintf("%s-%d", name, number))
			n.crowds = append(n.crowds, startCrowd(participants, w, settings.rate/float64(count), random))
		}
		of, err := runHistories(settings, s, n, participants[0].client, c.logs)
		all.merge(of)
		if err != nil {
			return all, fmt.Errorf("histories %d to %d: %w", first, first+count-1, err)
		}
		if of.findings > 0 {
			return all, fmt.Errorf("histories %d to %d: the cluster broke its promises", first, first+count-1)
		}
	}
	return all, nil
}

// runHistories runs the histories of the crowds, which have begun, under one fault, and checks each.
func runHistories(settings *settings, s scenario, n *nemesis, keeps connected, folder string) (*figures, error) {
	var failed error
	note := func(err error) {
		if failed == nil {
			failed = err
		}
	}
	var releases []func()
	for _, c := range n.crowds {
		release, err := c.keep(keeps.caller())
		note(err)
		if release != nil {
			releases = append(releases, release)
		}
	}
	time.Sleep(warmUp)
	if failed == nil {
		note(s.fault(n))
		note(n.failed)
	}
	note(n.cluster.mend())
	n.say("all faults are over")
	for _, c := range n.crowds {
		if failed == nil {
			note(c.awaitServed(c.history.now()))
		}
	}
	inParallel(len(n.crowds), func(number int) {
		if failed == nil {
			n.crowds[number].end(int64(settings.operations))
		} else {
			n.crowds[number].abandon()
		}
	})
	inParallel(len(releases), func(number int) { releases[number]() })
	n.say("all clients have ended")
	all := newFigures()
	lost, err := readEverywhere(n.cluster, n.crowds)
	note(err)
	n.say("all members were read")
	for number, c := range n.crowds {
		f := newFigures()
		f.histories = 1
		records := c.history.ofClients(c.history.since(0))
		f.add(records)
		tellUnanswered(c.history, records)
		f.lost = len(lost[number])
		findings, undecided, err := check(c.history, filepath.Join(folder, c.workload.Load().prefix))
		note(err)
		f.undecided = undecided
		for _, each := range lost[number] {
			findings = append(findings, finding{what: each})
		}
		f.findings = len(findings)
		tell(findings)
		all.merge(f)
	}
	n.say("all histories are checked")
	return all, failed
}

// inParallel calls a function with each number below that one.
func inParallel(count int, work func(number int)) {
	var done sync.WaitGroup
	for number := 0; number < count; number++ {
		done.Add(1)
		go func(number int) {
			defer done.Done()
			work(number)
		}(number)
	}
	done.Wait()
}

// tell prints what must not be, at most some of it.
func tell(findings []finding) {
	for number, each := range findings {
		if number == 5 {
			fmt.Printf("  and %d more\n", len(findings)-number)
			return
		}
		fmt.Printf("  VIOLATION: %s\n", each.what)
		for _, line := range each.lines {
			fmt.Printf("    %s\n", line)
		}
	}
}

// readEverywhere reads all keys of all histories through each member, which is a part of the histories. What was acknowledged in the ledger must be
// there: what is not is told, history by history.
func readEverywhere(c *cluster, crowds []*crowd) ([][]string, error) {
	lost := make([][]string, len(crowds))
	for _, m := range c.running() {
		connected, err := connect("reader", []string{c.addressOf(m)}, true)
		if err != nil {
			return lost, fmt.Errorf("member %d lets no client in after the last fault: %w", m.number, err)
		}
		errs := make([]error, len(crowds))
		inParallel(len(crowds), func(number int) {
			var missing []string
			missing, errs[number] = readAll(m, connected.caller(), crowds[number])
			lost[number] = append(lost[number], missing...)
		})
		connected.stop()
		for _, err := range errs {
			if err != nil {
				return lost, err
			}
		}
	}
	return lost, nil
}

// readAll reads all keys of a history through a member.
func readAll(m *member, reader client, c *crowd) (lost []string, err error) {
	h, w := c.history, c.workload.Load()
	number := h.observer(fmt.Sprintf("reader-%d", m.number))
	read := func(o op) (result, error) {
		deadline := time.Now().Add(recoveryLimit)
		for {
			if r := h.make(number, reader, o); r.Outcome == acknowledged {
				return r, nil
			} else if time.Now().After(deadline) {
				return r, fmt.Errorf("member %d does not serve %q %s after the last fault: %s", m.number, o.Key, recoveryLimit, r.Error)
			}
		}
	}
	for n := 0; n < registerKeys; n++ {
		if _, err := read(op{Kind: "get", Map: w.registers, Key: w.register(n)}); err != nil {
			return lost, err
		}
	}
	for key, value := range h.written(w.ledger) {
		r, err := read(op{Kind: "get", Map: w.ledger, Key: key})
		if err != nil {
			return lost, err
		}
		if r.Value != value {
			lost = append(lost, fmt.Sprintf("member %d has %q of %q, and %q was acknowledged", m.number, r.Value, key, value))
		}
	}
	return lost, nil
}
