package text

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
)

// Screen is what `status --watch` shows.
type Screen struct {
	Status localapi.Status
	Fleet  []fleet.Box
	Day    history.View
}

// Print prints the status, the map of all machines and the last day.
func (s *Screen) Print(out io.Writer, columns int, colour bool) {
	Status(out, s.Status)
	Fleet(out, s.Fleet, columns, colour)
	History(out, s.Day, columns)
}

// FleetBoxes is about how many boxes the map on a terminal has at the most.
const FleetBoxes = 400

// fleetColours are the colours of the states, beside their letters.
var fleetColours = map[string]string{fleet.Ready: green, fleet.Drifted: yellow, fleet.Starting: "34", fleet.Upcoming: "2", fleet.Cordoned: "35", fleet.Draining: "33;7", fleet.Sick: "31;7"}

// Fleet prints the map of all machines: of each its state's letter and the tenths that its pods request of the resource
// that is fullest, by group and zone.
func Fleet(out io.Writer, boxes []fleet.Box, columns int, colour bool) {
	if len(boxes) == 0 {
		return
	}
	if columns <= 0 {
		columns = 100
	}
	count, machines := fleet.Count(boxes), 0
	var legend []string
	for _, s := range fleet.States {
		if n := count[s.Name]; n > 0 {
			machines += n
			legend = append(legend, fmt.Sprintf("%s %d %s", letter(s.Name, s.Letter, colour), n, s.Name))
		}
	}
	fmt.Fprintf(out, "\nfleet:  %s\n", strings.Join(legend, "   "))
	fmt.Fprintln(out, wrap("beside each letter, the tenths of what the machine offers that its pods request (of cpu, memory or GPU, the fullest)"+several(machines, len(boxes)), columns, ""))
	for from := 0; from < len(boxes); {
		to := from + 1
		for to < len(boxes) && boxes[to].Group == boxes[from].Group && boxes[to].Zone == boxes[from].Zone {
			to++
		}
		fleetLine(out, boxes[from:to], columns, colour, from == 0 || boxes[from-1].Group != boxes[from].Group)
		from = to
	}
}

func several(machines, boxes int) string {
	if machines == boxes {
		return ""
	}
	return fmt.Sprintf("; %d machines are drawn as %d", machines, boxes)
}

// fleetLine prints the machines of one group in one zone, on as many lines as they need.
func fleetLine(out io.Writer, boxes []fleet.Box, columns int, colour, named bool) {
	if named {
		name := boxes[0].Group
		if name == "" {
			name = "of no node group"
		}
		fmt.Fprintf(out, "  %s\n", name)
	}
	head := "    "
	if zone := boxes[0].Zone; zone != "" {
		head += zone + "  "
	}
	indent := utf8.RuneCountInString(head)
	each := max(1, (columns-indent)/3)
	for i := range boxes {
		switch {
		case i == 0:
			fmt.Fprint(out, head)
		case i%each == 0:
			fmt.Fprintf(out, "\n%s", strings.Repeat(" ", indent))
		default:
			fmt.Fprint(out, " ")
		}
		b := &boxes[i]
		mark := "?"
		for _, s := range fleet.States {
			if s.Name == b.State {
				mark = s.Letter
			}
		}
		fmt.Fprint(out, letter(b.State, mark+tenths(&b.Machine), colour))
	}
	fmt.Fprintln(out)
}

// tenths is how full the fullest resource is: 0 to 9, "+" from there on, "-" where nothing is known.
func tenths(m *fleet.Machine) string {
	switch most := max(m.CPU, m.Memory, m.GPU); {
	case most < 0:
		return "-"
	case most >= 100:
		return "+"
	default:
		return string(rune('0' + most/10))
	}
}

func letter(state, text string, colour bool) string {
	if !colour {
		return text
	}
	return "\x1b[" + fleetColours[state] + "m" + text + "\x1b[0m"
}
