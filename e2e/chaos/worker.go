// Clients in other languages: one process for each language, which has clients by name and threads by number.
//
// A worker prints `ready`. Then each line of its input is an operation (workerOp, JSON): `connect` and `close` start and end a client, the others are
// made by one of its threads, to which locks belong. For each it prints a line with the result (workerResult) under the operation's number, within
// operationLimit, else that the outcome is unknown; operations of different clients and threads overlap. It ends with its input.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Languages of workers.
const (
	python = "python"
	java   = "java"
	rust   = "rust"
)

const (
	// closeLimit bounds how long a client may take to end, before its process is ended.
	closeLimit = 20 * time.Second
	// workerLineBytesMax bounds one line of a worker.
	workerLineBytesMax = 1 << 20
)

// worker is the process of a language.
type worker struct {
	language string
	process  *exec.Cmd
	log      string
	input    io.WriteCloser
	lock     sync.Mutex
	number   int
	// waiting is who waits for a result, by number; nil when the process has ended.
	waiting map[int]chan result
	ended   chan struct{}
}

// asked of a worker.
type workerOp struct {
	op
	ID      int    `json:"id"`
	Client  string `json:"client"`
	Thread  int    `json:"thread"`
	Routing string `json:"routing,omitempty"`
}

// told by a worker.
type workerResult struct {
	result
	ID int `json:"id"`
}

// worker is the process of that language: it is started once a run, and again when it had to be ended.
func (s *settings) worker(language string) (*worker, error) {
	if w := s.workers[language]; w != nil {
		select {
		case <-w.ended:
		default:
			return w, nil
		}
	}
	w, err := startWorker(s, language)
	if err != nil {
		return nil, fmt.Errorf("starting clients in %s: %w", language, err)
	}
	s.workers[language] = w
	return w, nil
}

// endWorkers ends the processes of all languages.
func (s *settings) endWorkers() {
	for _, w := range s.workers {
		w.stop()
	}
}

func startWorker(s *settings, language string) (*worker, error) {
	words := append([]string{}, s.languages[language]...)
	if len(words) == 0 {
		return nil, fmt.Errorf("FILBERT_CHAOS_WORKERS does not say how")
	}
	process := exec.Command(words[0], append(words[1:], fmt.Sprint(operationLimit.Seconds()))...)
	log, err := os.OpenFile(filepath.Join(s.out, "worker-"+language+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	process.Stderr = log
	input, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	w := &worker{
		language: language, process: process, log: log.Name(), input: input, waiting: map[int]chan result{}, ended: make(chan struct{}),
	}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, workerLineBytesMax)
	isReady := lines.Scan() && lines.Text() == "ready"
	go w.read(lines, log)
	if !isReady {
		w.stop()
		return nil, fmt.Errorf("it is not ready, see %s", w.log)
	}
	return w, nil
}

// read hands each result to who waits for it, until the process ends.
func (w *worker) read(lines *bufio.Scanner, log *os.File) {
	for lines.Scan() {
		var told workerResult
		if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
			_, _ = fmt.Fprintf(log, "not a result: %s\n", lines.Text())
			break
		}
		w.lock.Lock()
		waits := w.waiting[told.ID]
		delete(w.waiting, told.ID)
		w.lock.Unlock()
		if waits != nil {
			waits <- told.result
		}
	}
	_ = w.process.Process.Kill()
	_ = w.process.Wait()
	_ = log.Close()
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, waits := range w.waiting {
		waits <- result{Outcome: unknown, Error: "WorkerEnded"}
	}
	w.waiting = nil
	close(w.ended)
}

// ask sends an operation, and gives where its result comes.
func (w *worker) ask(o workerOp) <-chan result {
	comes := make(chan result, 1)
	w.lock.Lock()
	defer w.lock.Unlock()
	w.number++
	o.ID = w.number
	line, err := json.Marshal(o)
	if err == nil && w.waiting != nil {
		if _, err = w.input.Write(append(line, '\n')); err == nil {
			w.waiting[o.ID] = comes
			return comes
		}
	}
	comes <- result{Outcome: unknown, Error: "WorkerEnded"}
	return comes
}

// connect starts a client of the worker.
func (w *worker) connect(name string, addresses []string, unisocket bool) (*workerClient, error) {
	o := workerOp{op: op{Kind: "connect", Value: strings.Join(addresses, ",")}, Client: name}
	if unisocket {
		o.Routing = "unisocket"
	}
	select {
	case r := <-w.ask(o):
		if r.Outcome == acknowledged {
			return &workerClient{worker: w, name: name}, nil
		}
		return nil, fmt.Errorf("the client %s did not connect: %s, see %s", name, r.Error, w.log)
	case <-time.After(startLimit):
		return nil, fmt.Errorf("the client %s did not connect within %s, see %s", name, startLimit, w.log)
	}
}

func (w *worker) stop() {
	_ = w.input.Close()
	select {
	case <-w.ended:
	case <-time.After(5 * time.Second):
		_ = w.process.Process.Kill()
		<-w.ended
	}
}

// workerClient is a client of a worker, which several of the driver's clients may share.
type workerClient struct {
	worker *worker
	name   string
	lock   sync.Mutex
	count  int
}

// caller gives the client one more thread.
func (c *workerClient) caller() client {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.count++
	return &workerCaller{client: c, thread: c.count}
}

// stop ends the client; if it does not end, its process does.
func (c *workerClient) stop() {
	select {
	case <-c.worker.ask(workerOp{op: op{Kind: "close"}, Client: c.name}):
	case <-time.After(closeLimit):
		fmt.Printf("  the client %s did not end within %s: its process is ended, see %s\n", c.name, closeLimit, c.worker.log)
		_ = c.worker.process.Process.Kill()
		<-c.worker.ended
	}
}

// workerCaller is one thread of such a client, as locks know it.
type workerCaller struct {
	client *workerClient
	thread int
}

// do makes one operation. The worker bounds how long that takes.
func (c *workerCaller) do(o op) result {
	return <-c.client.worker.ask(workerOp{op: o, Client: c.client.name, Thread: c.thread})
}
