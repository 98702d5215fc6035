// Package pool makes Auto Scaling groups of one entry of groups.yaml: a group for each instance
// type, zone and market that the entry allows. A group that the cloud does not have yet is made
// by its first purchase, of one type in one zone, so that AWS never chooses for the engine: which
// machine comes, what it costs, and which quota refuses it are known, and the reaper's proof and
// "names the instance that goes" are those of every other Auto Scaling group. EC2 Fleet would start
// machines that no group lists.
//
// It makes no request. It refuses to delete a group: an empty one costs nothing, and Auto Scaling
// keeps its failures for the next read.
package pool
