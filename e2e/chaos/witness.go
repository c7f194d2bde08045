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
	// witnessPace is between two operations of a witness.
	witnessPace = 50 * time.Millisecond
)

// watch has witnesses read each register at a member, and one write what is written once, until the function is called.
func (n *nemesis) watch(m *member) (func(), error) {
	if n.history == nil {
		return func() {}, nil
	}
	connected, err := connect("witness", []string{n.cluster.addressOf(m)}, true)
	if err != nil {
		return nil, fmt.Errorf("a client that reaches member %d alone: %w", m.number, err)
	}
	w, stop := n.workload, make(chan struct{})
	var done sync.WaitGroup
	witness := func(name string, next func(number int) op) {
		caller, client := connected.caller(), n.history.witness(name)
		caller.limit = witnessLimit
		done.Add(1)
		go func() {
			defer done.Done()
			for number := 0; ; number++ {
				select {
				case <-stop:
					return
				case <-time.After(witnessPace):
					n.history.make(client, caller, next(number))
				}
			}
		}()
	}
	for number := 0; number < registerKeys; number++ {
		key := w.register(number)
		witness(fmt.Sprintf("witness-%d", number), func(int) op { return op{Kind: "get", Map: w.registers, Key: key} })
	}
	begun := n.history.now().Microseconds()
	witness("witness-writer", func(number int) op {
		value := fmt.Sprintf("witness-%d-%d.%d", m.number, begun, number)
		return op{Kind: "set", Map: w.ledger, Key: w.prefix + "-" + value, Value: value}
	})
	return func() {
		close(stop)
		done.Wait()
		connected.stop()
	}, nil
}
