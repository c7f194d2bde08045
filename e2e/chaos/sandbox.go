// The machine within the machine: the driver runs itself again in namespaces of its own, in which each member has a network interface on one
// bridge. Links between members, and between members and clients, can be cut there one by one, and all of it is gone when the driver ends.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// insideVariable tells the driver that it runs in namespaces of its own.
const insideVariable = "FILBERT_CHAOS_INSIDE"

// A packet to this hardware address reaches nobody.
const nobody = "02:00:00:00:ff:ff"

// clients is the end of a link at which all clients are.
const clients = 0

// network is where members and clients run: an own one for each member, or the loopback of this machine, where nothing can be cut.
type network struct {
	isOwn bool
	made  map[int]bool
	cuts  map[[2]int]bool
}

// reexecute runs this program in namespaces of its own and returns its exit status; an error if that is not allowed here.
func reexecute() (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	for _, program := range []string{"ip", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return 0, err
		}
	}
	attributes := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	inside := exec.Command(self, os.Args[1:]...)
	inside.Env = append(os.Environ(), insideVariable+"=1")
	inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
	inside.SysProcAttr = attributes
	// The thread that starts a process with such attributes must stay until that has ended.
	if err := inside.Start(); err != nil {
		return 0, err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-stop
		_ = inside.Process.Kill()
	}()
	err = inside.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, err
}

// ownNetwork makes the bridge.
func ownNetwork() (*network, error) {
	commands := []string{
		"mount --make-rprivate /",
		"mount -t proc proc /proc",
		"mount -t tmpfs tmpfs /run",
		"ip link set lo up",
		"ip link add bridge type bridge",
		"ip addr add " + hostOf(clients) + "/24 dev bridge",
		"ip link set bridge up",
	}
	for _, command := range commands {
		if err := run(command); err != nil {
			return nil, err
		}
	}
	return &network{isOwn: true, made: map[int]bool{}, cuts: map[[2]int]bool{}}, nil
}

// hostOf is the address of a member, or of the clients.
func hostOf(end int) string {
	if end == clients {
		return "10.77.0.254"
	}
	return "10.77.0." + strconv.Itoa(end)
}

// host is where a member serves.
func (n *network) host(member int) string {
	if !n.isOwn {
		return "127.0.0.1"
	}
	return hostOf(member)
}

// command is a program that runs where a member is.
func (n *network) command(member int, words []string) (*exec.Cmd, error) {
	if !n.isOwn {
		return exec.Command(words[0], words[1:]...), nil
	}
	name := "m" + strconv.Itoa(member)
	if !n.made[member] {
		commands := []string{
			"ip netns add " + name,
			"ip link add v" + name + " type veth peer name eth0 netns " + name,
			"ip link set v" + name + " master bridge up",
			"ip -n " + name + " link set lo up",
			"ip -n " + name + " addr add " + hostOf(member) + "/24 dev eth0",
			"ip -n " + name + " link set eth0 up",
		}
		for _, command := range commands {
			if err := run(command); err != nil {
				return nil, err
			}
		}
		n.made[member] = true
	}
	return exec.Command("ip", append([]string{"netns", "exec", name}, words...)...), nil
}

// cut loses every packet from one end to the other, and says so to nobody.
func (n *network) cut(from, to int) error {
	n.cuts[[2]int{from, to}] = true
	return run(n.neighbour(from, "replace", to) + " lladdr " + nobody + " nud permanent")
}

// cutBoth loses every packet between two ends.
func (n *network) cutBoth(one, other int) error {
	if err := n.cut(one, other); err != nil {
		return err
	}
	return n.cut(other, one)
}

// heal makes all links whole again.
func (n *network) heal() error {
	for link := range n.cuts {
		if err := run(n.neighbour(link[0], "del", link[1])); err != nil {
			return err
		}
		delete(n.cuts, link)
	}
	return nil
}

func (n *network) neighbour(at int, verb string, other int) string {
	if at == clients {
		return fmt.Sprintf("ip neigh %s %s dev bridge", verb, hostOf(other))
	}
	return fmt.Sprintf("ip -n m%d neigh %s %s dev eth0", at, verb, hostOf(other))
}

func run(line string) error {
	words := strings.Fields(line)
	printed, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(printed)))
	}
	return nil
}
