// Histories: clients at work, a scenario, the final reads, and the check.

package main

import (
	"fmt"
	"math/rand"
	"path/filepath"
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
	for number := 0; number < settings.histories && (number == 0 || time.Now().Before(until)); number++ {
		w := newWorkload(fmt.Sprintf("%s-%d", name, number))
		say := func(format string, words ...interface{}) {
			if settings.verbose {
				fmt.Printf("    %s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, words...))
			}
		}
		n := &nemesis{cluster: c, random: random, workload: w, say: say, caller: participants[0].keeper}
		of, err := runHistory(settings, s, n, participants, filepath.Join(c.logs, fmt.Sprint(number)))
		if of != nil {
			all.merge(of)
		}
		if err != nil {
			return all, fmt.Errorf("history %d: %w", number, err)
		}
		if of.findings > 0 {
			return all, fmt.Errorf("history %d: the cluster broke its promises", number)
		}
	}
	return all, nil
}

// runHistory runs one history and checks it.
func runHistory(settings *settings, s scenario, n *nemesis, of []participant, folder string) (*figures, error) {
	crowd := startCrowd(of, n.workload, settings.pace, n.random)
	n.history = crowd.history
	release, failed := crowd.keep(of[1].keeper)
	time.Sleep(warmUp)
	if failed == nil {
		failed = s.fault(n)
	}
	if failed == nil {
		failed = n.failed
	}
	if err := n.cluster.mend(); err != nil && failed == nil {
		failed = err
	}
	n.say("all faults are over")
	if failed == nil {
		failed = crowd.awaitServed(crowd.history.now())
	}
	if failed == nil {
		crowd.end(int64(settings.operations))
	} else {
		crowd.abandon()
	}
	if release != nil {
		release()
	}
	f := newFigures()
	f.histories = 1
	f.add(crowd.history.withoutWitnesses(crowd.history.since(0)))
	lost, err := readEverywhere(n.cluster, crowd.history, n.workload)
	if err != nil && failed == nil {
		failed = err
	}
	f.lost = len(lost)
	findings, undecided, err := check(crowd.history, folder)
	if err != nil && failed == nil {
		failed = err
	}
	f.undecided = undecided
	for _, each := range lost {
		findings = append(findings, finding{what: each})
	}
	f.findings = len(findings)
	tell(findings)
	return f, failed
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

// readEverywhere reads all keys through each member, which is a part of the history. What was acknowledged in the ledger must be there:
// what is not is told.
func readEverywhere(c *cluster, h *history, w *workload) ([]string, error) {
	written := map[string]string{}
	for _, r := range h.since(0) {
		if r.op.Map == w.ledger && r.result.Outcome == acknowledged {
			written[r.op.Key] = r.op.Value
		}
	}
	var lost []string
	for _, m := range c.running() {
		connected, err := connect("reader", []string{c.addressOf(m)}, true)
		if err != nil {
			return nil, fmt.Errorf("member %d lets no client in after the last fault: %w", m.number, err)
		}
		number, reader := h.client(fmt.Sprintf("reader-%d", m.number)), connected.caller()
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
		for n := 0; n < registerKeys && err == nil; n++ {
			_, err = read(op{Kind: "get", Map: w.registers, Key: w.register(n)})
		}
		for key, value := range written {
			if err != nil {
				break
			}
			var r result
			if r, err = read(op{Kind: "get", Map: w.ledger, Key: key}); err == nil && r.Value != value {
				lost = append(lost, fmt.Sprintf("member %d has %q of %q, and %q was acknowledged", m.number, r.Value, key, value))
			}
		}
		connected.stop()
		if err != nil {
			return lost, err
		}
	}
	return lost, nil
}
