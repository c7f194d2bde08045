// Clients in other languages: processes that read an operation from a line and write its result to another.

package main

import (
	"bufio"
	_ "embed"
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

// The client in Python is a part of the driver.
//
//go:embed worker.py
var workerInPython []byte

// worker is such a process: one client, one operation at a time.
type worker struct {
	lock    sync.Mutex
	process *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Scanner
}

// startWorker starts a client in Python.
func startWorker(settings *settings, name string, addresses []string) (*worker, error) {
	script := filepath.Join(settings.out, "worker.py")
	if err := os.WriteFile(script, workerInPython, 0o644); err != nil {
		return nil, err
	}
	process := exec.Command(settings.python, script, name, strings.Join(addresses, ","), fmt.Sprint(operationLimit.Seconds()))
	log, err := os.OpenFile(filepath.Join(settings.out, "worker-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
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
		return nil, fmt.Errorf("starting a client in Python: %w", err)
	}
	w := &worker{process: process, input: input, output: bufio.NewScanner(output)}
	w.output.Buffer(nil, 1<<20)
	if !w.output.Scan() || w.output.Text() != "ready" {
		w.stop()
		return nil, fmt.Errorf("the client %q in Python did not connect, see %s", name, log.Name())
	}
	return w, nil
}

// do makes one operation.
func (w *worker) do(o op) result {
	w.lock.Lock()
	defer w.lock.Unlock()
	line, err := json.Marshal(o)
	if err != nil {
		return result{Outcome: unknown, Error: err.Error()}
	}
	if _, err := w.input.Write(append(line, '\n')); err != nil {
		return result{Outcome: unknown, Error: "the worker has ended: " + err.Error()}
	}
	if !w.output.Scan() {
		return result{Outcome: unknown, Error: "the worker has ended"}
	}
	var r result
	if err := json.Unmarshal(w.output.Bytes(), &r); err != nil {
		return result{Outcome: unknown, Error: err.Error()}
	}
	return r
}

func (w *worker) close() { w.stop() }

func (w *worker) stop() {
	_ = w.input.Close()
	ended := make(chan struct{})
	go func() {
		_ = w.process.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		_ = w.process.Process.Kill()
		<-ended
	}
}
