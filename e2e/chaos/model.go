// What a key of a map and a lock may answer, for Porcupine.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkLimit bounds the search for an order of one key's operations.
const checkLimit = 60 * time.Second

// nobodyHolds is the state of a free lock.
const nobodyHolds = -1

// asked is what the models see of an operation.
type asked struct {
	client int
	op     op
}

// register is one key of a map: its state is its value, empty when there is none.
var register = porcupine.Model{
	Init: func() interface{} { return "" },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		return stepRegister(state.(string), input.(asked).op, output.(result))
	},
	DescribeOperation: describe,
	DescribeState:     func(state interface{}) string { return fmt.Sprintf("%q", state) },
}

func stepRegister(value string, o op, r result) (bool, interface{}) {
	isKnown := r.Outcome == acknowledged
	tellsOld := !isKnown || r.Value == value
	switch o.Kind {
	case "get":
		return tellsOld, value
	case "put":
		return tellsOld, o.Value
	case "set":
		return true, o.Value
	case "remove":
		return tellsOld, ""
	case "putIfAbsent":
		if value == "" {
			return tellsOld, o.Value
		}
		return tellsOld, value
	case "replaceIfSame":
		isSame := value == o.Expected && value != ""
		if isSame {
			return !isKnown || r.Truth, o.Value
		}
		return !isKnown || !r.Truth, value
	case "sqlUpdate":
		if value == "" {
			return !isKnown || !r.Truth, value
		}
		return !isKnown || r.Truth, o.Value
	}
	return false, value
}

// mutex is the lock of a key: its state is the client that holds it. No client takes a lock that it holds.
var mutex = porcupine.Model{
	Init: func() interface{} { return nobodyHolds },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		who := input.(asked)
		return stepMutex(state.(int), who.client, who.op, output.(result))
	},
	DescribeOperation: describe,
	DescribeState: func(state interface{}) string {
		if state.(int) == nobodyHolds {
			return "free"
		}
		return fmt.Sprintf("held by client %d", state)
	},
}

func stepMutex(holder, who int, o op, r result) (bool, interface{}) {
	isKnown := r.Outcome == acknowledged
	switch o.Kind {
	case "tryLock":
		if holder == nobodyHolds {
			return !isKnown || r.Truth, who
		}
		return !isKnown || !r.Truth, holder
	case "unlock":
		if holder == who {
			return !isKnown || r.Truth, nobodyHolds
		}
		return !isKnown || !r.Truth, holder
	}
	return false, holder
}

func describe(input, output interface{}) string {
	a, r := input.(asked), output.(result)
	words := []string{a.op.Kind}
	if a.op.Expected != "" {
		words = append(words, a.op.Expected)
	}
	if a.op.Value != "" {
		words = append(words, a.op.Value)
	}
	switch {
	case r.Outcome != acknowledged:
		words = append(words, "->", string(r.Outcome), r.Error)
	case a.op.Kind == "replaceIfSame" || a.op.Kind == "sqlUpdate" || a.op.Kind == "tryLock" || a.op.Kind == "unlock":
		words = append(words, "->", fmt.Sprint(r.Truth))
	case a.op.Kind != "set":
		words = append(words, "->", fmt.Sprintf("%q", r.Value))
	}
	return strings.Join(words, " ")
}

// finding is something that must not be.
type finding struct {
	what string
	// lines tell it operation by operation.
	lines []string
}

// check looks for an order of each key's operations in which every answer is right. What was refused was not made; what is unknown may
// have been made at any time after it was asked for, or never. A drawing of what is wrong goes into the folder.
func check(h *history, folder string) (findings []finding, undecided int, err error) {
	byKey := map[string][]record{}
	end := time.Duration(0)
	for _, r := range h.since(0) {
		if r.returned > end {
			end = r.returned
		}
		if r.result.Outcome != refused {
			byKey[r.op.Map+" "+r.op.Key] = append(byKey[r.op.Map+" "+r.op.Key], r)
		}
	}
	var keys []string
	for key := range byKey {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for number, key := range keys {
		records := byKey[key]
		model := register
		if records[0].op.Kind == "tryLock" || records[0].op.Kind == "unlock" {
			model = mutex
		}
		verdict, info := porcupine.CheckOperationsVerbose(model, operations(records, end), checkLimit)
		if verdict == porcupine.Unknown {
			undecided++
		}
		if verdict != porcupine.Illegal {
			continue
		}
		path := filepath.Join(folder, fmt.Sprintf("violation-%d.html", number))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, 0, err
		}
		if err := porcupine.VisualizePath(model, info, path); err != nil {
			return nil, 0, err
		}
		what := fmt.Sprintf("the operations of %s have no order in which all answers are right; drawn in %s", key, path)
		findings = append(findings, finding{what: what, lines: told(h, records)})
	}
	return findings, undecided, nil
}

func operations(records []record, end time.Duration) []porcupine.Operation {
	var made []porcupine.Operation
	for _, r := range records {
		returned := r.returned
		if r.result.Outcome == unknown {
			if r.op.Kind == "get" {
				// It changes nothing, whenever it was made.
				continue
			}
			returned = end + 1
		}
		made = append(made, porcupine.Operation{
			ClientId: r.client, Input: asked{r.client, r.op}, Output: r.result, Call: int64(r.call), Return: int64(returned),
		})
	}
	return made
}

// told is a key's history, line by line.
func told(h *history, records []record) []string {
	records = append([]record{}, records...)
	sort.Slice(records, func(a, b int) bool { return records[a].call < records[b].call })
	var lines []string
	for _, r := range records {
		lines = append(lines, fmt.Sprintf("%9.1f .. %9.1f ms  %-12s %s", millis(r.call), millis(r.returned), h.names[r.client],
			describe(asked{r.client, r.op}, r.result)))
	}
	return lines
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
