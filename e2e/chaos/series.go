// The same fault many times under load, for figures: leaders that are killed and replaced, members that join and leave in order.

package main

import (
	"fmt"
	"math/rand"
	"sort"
	"time"
)

// failoverLimit is how long a failover may take: what takes longer is told one by one.
const failoverLimit = 2 * time.Second

// runSeries runs one fault so many times.
func runSeries(s *settings, kind string, count int, seed int64) (int, error) {
	network, err := s.newNetwork()
	if err != nil {
		return 1, err
	}
	c, err := startCluster(s, network, s.members, kind)
	if err != nil {
		return 1, err
	}
	defer c.stop()
	participants, end, err := clientsOf(s, c)
	if err != nil {
		return 1, err
	}
	defer end()
	w := s.newWorkload(kind)
	random := rand.New(rand.NewSource(seed))
	say := func(format string, words ...interface{}) {
		if s.verbose {
			fmt.Printf("    %s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, words...))
		}
	}
	all := startCrowd(participants, w, s.rate, random)
	n := &nemesis{cluster: c, random: random, crowds: []*crowd{all}, say: say, caller: participants[0].client.caller()}
	time.Sleep(warmUp)
	total := newFigures()
	var longest, took []time.Duration
	counted, failed := 0, error(nil)
	for number := 1; number <= count && failed == nil; number++ {
		// Histories of a key stay short: each fault has keys of its own.
		all.workload.Store(s.newWorkload(fmt.Sprintf("%s-%d", kind, number)))
		begun := all.history.now()
		if kind == "kill" {
			failed = n.replace(n.leader(), 0)
		} else {
			failed = joinAndLeave(n)
		}
		if failed == nil {
			failed = n.failed
		}
		if failed == nil {
			failed = all.awaitServed(all.history.now())
		}
		took = append(took, all.history.now()-begun)
		// What was under way at its beginning is of this fault; all of it has ended by now.
		records := all.history.since(counted)
		counted += len(records)
		of := newFigures()
		of.add(records)
		longest = append(longest, quantile(of.longest, 1))
		total.merge(of)
		fmt.Printf("%s %3d: longest pause %5.2f s, over after %5.2f s, %d operations, errors: %s\n", kind, number,
			quantile(of.longest, 1).Seconds(), took[len(took)-1].Seconds(), of.operations, of.errorsLine())
		if s.verbose || quantile(of.longest, 1) > failoverLimit {
			tellSlowest(all.history, records)
		}
	}
	all.abandon()
	missing, err := readEverywhere(c, n.crowds)
	lost := missing[0]
	if failed == nil {
		failed = err
	}
	findings, undecided, err := check(all.history, c.logs)
	if failed == nil {
		failed = err
	}
	for _, each := range lost {
		findings = append(findings, finding{what: each})
	}
	tell(findings)
	fmt.Printf("\n%d times %s: longest pause p50 %.2f s, p99 %.2f s, max %.2f s; a client's p50 %.2f s\n", len(longest), kind,
		quantile(longest, 0.5).Seconds(), quantile(longest, 0.99).Seconds(), quantile(longest, 1).Seconds(),
		quantile(total.longest, 0.5).Seconds())
	fmt.Printf("over after p50 %.2f s, max %.2f s; %d operations: %d acknowledged, %d unknown, %d refused; errors: %s\n",
		quantile(took, 0.5).Seconds(), quantile(took, 1).Seconds(), total.operations, total.by[acknowledged], total.by[unknown],
		total.by[refused], total.errorsLine())
	fmt.Printf("lost acknowledged writes: %d, violations: %d, not decided: %d keys; seed %d, load of the machine %s\n", len(lost),
		len(findings), undecided, seed, load())
	if failed != nil || len(findings) > 0 {
		return 1, failed
	}
	return 0, nil
}

// tellSlowest prints what took longest, and what was not acknowledged, with the time of day, by which it is found in the members' logs.
func tellSlowest(h *history, records []record) {
	sort.Slice(records, func(a, b int) bool { return records[a].took() > records[b].took() })
	for number, r := range records {
		if number >= 5 && r.result.Outcome == acknowledged {
			continue
		}
		tellRecord(h, r)
	}
}

// tellUnanswered prints the operations that a client has given up.
func tellUnanswered(h *history, records []record) {
	for _, r := range records {
		if r.result.Error == "TookTooLong" {
			tellRecord(h, r)
		}
	}
}

func tellRecord(h *history, r record) {
	at := func(since time.Duration) string { return h.begun.Add(since).UTC().Format("15:04:05.000") }
	fmt.Printf("    %s .. %s %s: %s %s\n", at(r.call), at(r.returned), h.names[r.client], describe(asked{r.client, r.op}, r.result), r.op.Key)
}
