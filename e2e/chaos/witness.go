// Witnesses: clients that reach one member alone, and ask it while others cannot be agreed with. Clients that know all members leave one
// that is deposed, and nobody would see what it goes on to answer.

package main

import (
	"fmt"
	"sync"
	"time"
)

const (
	// witnessLimit bounds how long a witness waits for an answer: a member that is right has none.
	witnessLimit = 700 * time.Millisecond
	// witnessPace is between two operations of a witness, where there is one history.
	witnessPace = 50 * time.Millisecond
)

// watch has witnesses read each register of each history at a member, and one for each history write what is written once, until the function is
// called. So many histories, so much less of each: the load on the member stays the same.
func (n *nemesis) watch(m *member) (func(), error) {
	connected, err := connect("witness", []string{n.cluster.addressOf(m)}, true)
	if err != nil {
		return nil, fmt.Errorf("a client that reaches member %d alone: %w", m.number, err)
	}
	pace, stop := witnessPace*time.Duration(len(n.crowds)), make(chan struct{})
	var done sync.WaitGroup
	for _, c := range n.crowds {
		w, history := c.workload.Load(), c.history
		witness := func(name string, next func(number int) op) {
			caller, client := connected.callerWithin(witnessLimit), history.observer(name)
			done.Add(1)
			go func() {
				defer done.Done()
				for number := 0; ; number++ {
					select {
					case <-stop:
						return
					case <-time.After(pace):
						history.make(client, caller, next(number))
					}
				}
			}()
		}
		for number := 0; number < registerKeys; number++ {
			key := w.register(number)
			witness(fmt.Sprintf("witness-%d", number), func(int) op { return op{Kind: "get", Map: w.registers, Key: key} })
		}
		begun := history.now().Microseconds()
		witness("witness-writer", func(number int) op {
			value := fmt.Sprintf("witness-%d-%d.%d", m.number, begun, number)
			return op{Kind: "set", Map: w.ledger, Key: w.prefix + "-" + value, Value: value}
		})
	}
	return func() {
		close(stop)
		done.Wait()
		connected.stop()
	}, nil
}
