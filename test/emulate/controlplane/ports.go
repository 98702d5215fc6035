package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// freePorts finds n TCP ports that are free on 127.0.0.1 now. They lie below the
// kernel's ephemeral range: a part is started again on its old port, and a port of
// that range could by then be the source of somebody's connection, or be dialled
// by itself (a client that redials a dead loopback port can connect to itself).
func freePorts(n int) ([]int, error) {
	low, high := 16384, ephemeralStart()-1
	if high-low < 1000 {
		low, high = 10240, 32767
	}
	var ports []int
	taken := map[int]bool{}
	for try := 0; try < 2000 && len(ports) < n; try++ {
		port := low + rand.IntN(high-low)
		if taken[port] {
			continue
		}
		taken[port] = true
		if portFree(port) == nil {
			ports = append(ports, port)
		}
	}
	if len(ports) < n {
		return nil, errors.New("find free ports: none left on 127.0.0.1 between " + strconv.Itoa(low) + " and " + strconv.Itoa(high))
	}
	return ports, nil
}

// portFree is nil when somebody could listen on the port now.
func portFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// ephemeralStart is where the kernel begins to pick source ports; 32768 unless
// Linux says otherwise.
func ephemeralStart() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	var first int
	if err == nil {
		if _, err := fmt.Sscan(string(text), &first); err == nil {
			return first
		}
	}
	return 32768
}
