package convert

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
)

// unread are fields of a message that no decision reads, by their numbers in generated.proto of
// k8s.io/api/core/v1 and k8s.io/apimachinery/pkg/apis/meta/v1. A field that maps to nil is skipped
// whole; of the others, the fields within are.
type unread map[protowire.Number]unread

func fields(numbers ...protowire.Number) unread {
	out := make(unread, len(numbers))
	for _, n := range numbers {
		out[n] = nil
	}
	return out
}

// unreadOfPod is a part of what stripPod drops: what most pods have much of. A skipped field costs
// no memory and about a tenth of what decoding it costs.
var (
	// Of a container: image, command, args, workingDir, envFrom, env, resizePolicy, volumeMounts,
	// volumeDevices, the probes, lifecycle, the fields of termination messages, imagePullPolicy,
	// securityContext, and those of a console.
	unreadOfContainer = fields(2, 3, 4, 5, 19, 7, 23, 9, 21, 10, 11, 22, 12, 13, 20, 14, 15, 16, 17, 18)
	// Of a volume: the items of secret, downwardAPI and configMap, and the sources of projected. That
	// the volume is one of these is read.
	unreadOfVolume = unread{2: {6: fields(2), 16: fields(1), 19: fields(2), 26: fields(1)}}
	// Of a container's status all but its name, count of restarts, allocatedResources and resources, of its state why it waits, and of
	// its last state when it ended.
	unreadOfState  = unread{1: fields(2), 2: nil, 3: nil}
	unreadOfLast   = unread{1: nil, 2: nil, 3: fields(1, 2, 3, 4, 5, 7)}
	unreadOfStatus = unread{2: unreadOfState, 3: unreadOfLast, 4: nil, 6: nil, 7: nil, 8: nil, 9: nil, 12: nil, 13: nil, 14: nil, 15: nil}
	unreadOfPod    = unread{
		1: fields(17), // managedFields
		2: {
			1: unreadOfVolume, 2: unreadOfContainer, 20: unreadOfContainer,
			34: nil, 14: nil, 15: nil, 23: nil, 26: nil, // ephemeralContainers, securityContext, imagePullSecrets, hostAliases, dnsConfig
		},
		3: {
			2: fields(3), // of a condition: lastProbeTime
			8: unreadOfStatus, 10: unreadOfStatus,
			// message, reason, the addresses, startTime, qosClass, the statuses of ephemeral containers, resize and
			// observedGeneration
			3: nil, 4: nil, 5: nil, 6: nil, 7: nil, 9: nil, 12: nil, 13: nil, 14: nil, 16: nil, 17: nil, 18: nil, 21: nil,
		},
	}
)

// DecodePod reads a Pod from its protobuf form, without some of the fields that Strip drops. It
// changes raw, and the Pod keeps nothing of it.
func DecodePod(raw []byte) (*corev1.Pod, error) {
	kept, err := dropFields(raw, unreadOfPod)
	if err != nil {
		return nil, fmt.Errorf("read a Pod: %w", err)
	}
	p := &corev1.Pod{}
	return p, p.Unmarshal(kept)
}

// dropFields moves the fields of a message that are kept to its beginning. It costs the bytes of the message
// times its depth.
func dropFields(raw []byte, drop unread) ([]byte, error) {
	end := 0
	for at := 0; at < len(raw); {
		number, kind, tag := protowire.ConsumeTag(raw[at:])
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, kind, raw[at+tag:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		field := raw[at : at+tag+size]
		at += len(field)
		within, some := drop[number]
		if some && within == nil {
			continue
		}
		if !some || kind != protowire.BytesType {
			end += copy(raw[end:], field)
			continue
		}
		_, length := protowire.ConsumeVarint(field[tag:])
		kept, err := dropFields(field[tag+length:], within)
		if err != nil {
			return nil, err
		}
		end += copy(raw[end:], field[:tag])
		end += binary.PutUvarint(raw[end:end+length], uint64(len(kept))) // no longer than it was
		end += copy(raw[end:], kept)
	}
	return raw[:end], nil
}
