// Chaos: a cluster of real members loses nothing that it acknowledged, its histories are linearizable, and clients see a failover as a pause.
//
// Real members in namespaces of their own, stock clients in several languages, faults by name, histories that Porcupine checks. The words
// that start a member are in FILBERT_E2E_MEMBER, a JSON array, as in all suites; FILBERT_CHAOS_WORKERS is an object of such arrays, the words that
// start the clients of each language.
//
//	main -> run: a history = load (clients) + scenarios (faults) -> model (Porcupine) -> figures
//	     -> series: the same fault many times, for figures
//	sandbox: namespaces and links    cluster: members    client: clients in Go    worker: clients in Python, Java and Rust
//	witness: clients of one member alone
//
// Defects that are planted (folder planted) show that the checks find them.

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// statusLeftOut is the exit status of a run of which a part cannot be done here: all that could run did, and has passed.
const statusLeftOut = 3

// settings of a run.
type settings struct {
	member []string
	// languages are the words that start the worker of a language, and workers those that run.
	languages  map[string][]string
	workers    map[string]*worker
	out        string
	members    int
	histories  int
	atOnce     int
	operations int
	rate       float64
	replicas   int
	sql        bool
	verbose    bool
	sandboxed  bool
	// planted tells that the program has a defect that must be found.
	planted bool
	network *network
}

// newNetwork is where the next cluster runs: the namespaces are the same, with all links whole.
func (s *settings) newNetwork() (*network, error) {
	if !s.sandboxed {
		return &network{}, nil
	}
	if s.network == nil {
		var err error
		if s.network, err = ownNetwork(); err != nil {
			return nil, err
		}
	}
	return s.network, s.network.heal()
}

func main() {
	status, err := chaos()
	if err != nil {
		fmt.Println("chaos:", err)
		status = 1
	}
	os.Exit(status)
}

func chaos() (int, error) {
	var s settings
	var names []string
	for _, each := range scenarios {
		names = append(names, each.name)
	}
	flag.IntVar(&s.members, "members", 3, "members of a cluster: 3 or 5")
	flag.IntVar(&s.histories, "histories", 3, "histories of each scenario, on one cluster")
	flag.IntVar(&s.operations, "operations", 500, "operations of a history, at least")
	flag.IntVar(&s.atOnce, "at-once", 1, "so many of the histories have one fault in common, each with threads of its own")
	flag.Float64Var(&s.rate, "rate", 1_000, "operations a second of all histories that run at once together, as long as they are answered at once")
	flag.IntVar(&s.replicas, "replicas", 0, "members that hold each partition; 0: as many as the program's default says")
	flag.BoolVar(&s.sql, "sql", true, "clients make updates by SQL as well")
	flag.BoolVar(&s.verbose, "verbose", false, "tell each fault")
	flag.BoolVar(&s.planted, "planted", false, "the program has a defect that must be found: the run fails when it is not")
	only := flag.String("scenario", "", "scenarios, separated by commas; all of them if empty: "+strings.Join(names, ", "))
	seed := flag.Int64("seed", 0, "seed of what clients do and what goes wrong; 0 takes one from the clock")
	minutes := flag.Float64("minutes", 0, "go on with new seeds for so long; 0: every scenario once")
	kills := flag.Int("kills", 0, "instead: kill a leader so many times under load, each time replaced by a new member")
	joins := flag.Int("joins", 0, "instead: have a member join and leave in order so many times under load")
	out := flag.String("out", "", "folder for logs of members and drawings of violations [default: a new one]")
	flag.Parse()
	if err := json.Unmarshal([]byte(os.Getenv("FILBERT_CHAOS_WORKERS")), &s.languages); err != nil {
		return 1, fmt.Errorf("FILBERT_CHAOS_WORKERS is not set; run `cargo xtask chaos`")
	}
	if err := json.Unmarshal([]byte(os.Getenv("FILBERT_E2E_MEMBER")), &s.member); err != nil || len(s.member) == 0 {
		return 1, fmt.Errorf("FILBERT_E2E_MEMBER is not set; run `cargo xtask chaos`")
	}
	if s.members < 3 || s.members > 9 || s.histories < 1 || s.atOnce < 1 || s.operations < 1 || s.rate <= 0 {
		return 1, fmt.Errorf("expected 3 to 9 members, at least one history of one operation, one at once, and a rate above 0")
	}
	s.sandboxed = os.Getenv(insideVariable) != ""
	if !s.sandboxed {
		status, err := reexecute()
		if err == nil {
			return status, nil
		}
		fmt.Printf("namespaces cannot be made here (%v): members run on the loopback, and no links are cut\n", err)
	}
	if *seed == 0 {
		*seed = time.Now().UnixNano() % 1_000_000_000
	}
	var err error
	if s.out, err = folder(*out); err != nil {
		return 1, err
	}
	stopOnSignal()
	s.workers = map[string]*worker{}
	defer s.endWorkers()
	fmt.Printf("seed %d, %d members, logs in %s, load of the machine %s\n", *seed, s.members, s.out, load())
	switch {
	case *kills > 0:
		return runSeries(&s, "kill", *kills, *seed)
	case *joins > 0:
		return runSeries(&s, "join", *joins, *seed)
	}
	return runScenarios(&s, *only, *seed, time.Duration(*minutes*float64(time.Minute)))
}

// stopOnSignal ends this process, and with it, where it has namespaces of its own, all that it has started.
func stopOnSignal() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-stop
		os.Exit(130)
	}()
}

func folder(wanted string) (string, error) {
	if wanted == "" {
		return os.MkdirTemp("", "filbert-chaos-")
	}
	wanted, err := filepath.Abs(wanted)
	if err != nil {
		return "", err
	}
	return wanted, os.MkdirAll(wanted, 0o755)
}

// chosen are the scenarios that were asked for and can run here, and how many cannot.
func chosen(s *settings, only string) ([]scenario, int, error) {
	var all []scenario
	leftOut := 0
	known := map[string]bool{}
	for _, each := range scenarios {
		known[each.name] = true
		isWanted := only == "" || strings.Contains(","+only+",", ","+each.name+",")
		switch {
		case isWanted && each.cuts && !s.sandboxed:
			leftOut++
			fmt.Printf("%-28s  not run: no links can be cut here\n", each.name)
		case isWanted:
			all = append(all, each)
		}
	}
	for _, name := range strings.Split(only, ",") {
		if name != "" && !known[name] {
			return nil, 0, fmt.Errorf("there is no scenario %q, expected one of those that --help lists", name)
		}
	}
	return all, leftOut, nil
}

// runScenarios runs the scenarios in turn: once, or for so long.
func runScenarios(s *settings, only string, seed int64, long time.Duration) (int, error) {
	all, leftOut, err := chosen(s, only)
	if err != nil {
		return 1, err
	}
	switch {
	case len(all) == 0 && leftOut == 0:
		return 1, fmt.Errorf("no scenario is named, expected some of those that --help lists")
	case len(all) == 0:
		return statusLeftOut, nil
	}
	until := time.Now().Add(long)
	total, status := newFigures(), 0
	by := map[string]*figures{}
	begun := time.Now()
	fmt.Println(figuresHead)
	for round := 0; round == 0 || time.Now().Before(until); round++ {
		for _, each := range all {
			limit := until
			if long == 0 {
				limit = time.Now().Add(24 * time.Hour)
			} else if round > 0 && time.Now().After(until) {
				break
			}
			f, err := runScenario(s, each, seed+int64(round), limit)
			if f != nil {
				fmt.Println(f.line(each.name))
				if by[each.name] == nil {
					by[each.name] = newFigures()
				}
				by[each.name].merge(f)
				total.merge(f)
			}
			if s.planted && f != nil && f.findings > 0 {
				fmt.Printf("the planted defect was found: %s, seed %d\n", each.name, seed+int64(round))
				return 0, nil
			}
			if err != nil {
				status = 1
				fmt.Printf("  FAILED: %s: %v\n  again by: --scenario %s --seed %d --members %d\n", each.name, err, each.name,
					seed+int64(round), s.members)
			}
		}
	}
	if s.planted {
		return 1, fmt.Errorf("the planted defect was not found in %d histories", total.histories)
	}
	if long > 0 {
		fmt.Printf("\nin %s:\n%s\n", time.Since(begun).Round(time.Second), figuresHead)
		for _, each := range all {
			if f := by[each.name]; f != nil {
				fmt.Println(f.line(each.name))
			}
		}
	}
	fmt.Println(total.line("all"))
	fmt.Printf("errors: %s; not decided by the checker: %d keys; seed %d, load of the machine %s\n", total.errorsLine(), total.undecided,
		seed, load())
	if leftOut > 0 {
		fmt.Printf("%d scenarios were left out: no links can be cut here\n", leftOut)
		if status == 0 {
			status = statusLeftOut
		}
	}
	return status, nil
}
