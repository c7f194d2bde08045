// Figures: how many operations became what, and how long clients waited.

package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"time"
)

// figures of one scenario, or of all.
type figures struct {
	histories  int
	operations int
	by         map[outcome]int
	errors     map[string]int
	// longest pauses, one for each client in each history.
	longest   []time.Duration
	lost      int
	undecided int
	findings  int
}

func newFigures() *figures { return &figures{by: map[outcome]int{}, errors: map[string]int{}} }

// add takes note of operations.
func (f *figures) add(records []record) {
	longest := map[int]time.Duration{}
	for _, r := range records {
		f.operations++
		f.by[r.result.Outcome]++
		if r.result.Error != "" {
			f.errors[r.result.Error]++
		}
		if took := r.took(); took > longest[r.client] {
			longest[r.client] = took
		}
	}
	for _, took := range longest {
		f.longest = append(f.longest, took)
	}
}

func (f *figures) merge(other *figures) {
	f.histories += other.histories
	f.operations += other.operations
	f.lost += other.lost
	f.undecided += other.undecided
	f.findings += other.findings
	f.longest = append(f.longest, other.longest...)
	for each, count := range other.by {
		f.by[each] += count
	}
	for each, count := range other.errors {
		f.errors[each] += count
	}
}

const figuresHead = "scenario                      histories  operations  acknowledged  unknown  refused   pause p50 / max   lost  violations"

func (f *figures) line(name string) string {
	return fmt.Sprintf("%-28s  %9d  %10d  %12d  %7d  %7d  %6.2f s / %5.2f s  %5d  %10d", name, f.histories, f.operations,
		f.by[acknowledged], f.by[unknown], f.by[refused], quantile(f.longest, 0.5).Seconds(), quantile(f.longest, 1).Seconds(), f.lost,
		f.findings)
}

// errorsLine tells the errors by kind.
func (f *figures) errorsLine() string { return counted(f.errors) }

func counted(counts map[string]int) string {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	sort.Strings(names)
	for at, name := range names {
		names[at] = fmt.Sprintf("%d %s", counts[name], name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// quantile is the value that so great a part is not above.
func quantile(all []time.Duration, part float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := append([]time.Duration{}, all...)
	sort.Slice(sorted, func(a, b int) bool { return sorted[a] < sorted[b] })
	return sorted[int(part*float64(len(sorted)-1)+0.5)]
}

// load says how busy the machine is: pauses that were measured beside a compiler say little.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
