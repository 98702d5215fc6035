// Package purchase chooses what to buy for the pods that wait by simulating kube-scheduler: New(round.State).Solve().
//
// There is one board (schedsim.Sim): the nodes, the machines that are upcoming, and the machines of the purchase that is tried. A purchase
// is a number of machines by group. It is judged as the cluster that it makes: all its machines join, kube-scheduler binds the pods that
// wait, in the order of its queue and by its scores, and what it leaves is a second purchase. A few purchases are proposed by what
// machines hold for their price (propose.go), each is tried in one draw of what nobody knows (trial.go), machines of the best are exchanged
// for cheaper ones (exchange.go), and the best of these stand several draws (choose.go).
//
// Where pods are too many to be bound one by one (size.go), they are placed on the same board by counts, and the cheapest of a few packings is
// bought (bycounts.go). In 40 odd worlds of test/judge/worlds that are all decided so (seed 420001), it costs 1.02 times what binding one by one
// does, leaves 2.9 % of the pods after the first purchase (2.1 %; no purchase helps 1.9), and the filters refuse none of its 15,255 claims.
// Beside the packing that did this before with 5,000 lines more it costs 1.005 times as much (1.003 in the geometric mean; 3.2 % left, 10 claims
// refused), and 0.924 in 25 worlds whose pods the framework binds (0.903; seed 610001).
// Taken apart, in 20 drawn worlds that are all decided so (seed 956001): without the step to cheaper machines at its end (packed) it costs 1.021
// times as much. Machine after machine by worth for price, as for small rounds (cover), in its place costs 0.991 there, and 1082 machines in
// place of 1029 for 30,000 pods of 300 classes, 3187 in place of 1064 where they are spread over hosts, and its steps end at 400 groups.
//
// Missing still: large rounds that are judged by scores (one binding in the order of classes costs the classes times the places, which
// most of them have steps for), one representation with agent/fit, moves that see what changed in place of whole trials (a trial of 6,000
// pods in 199 classes takes a third of the budget), and proposals that serve first the classes with the fewest groups (anti-affinity on
// zones can lock a class out).
//
// Layer 1, pure. It refuses to remove anything, to read a clock, and to spend more than the round's budget of steps: a search that is cut
// short is told.
//
// Costs in doc comments have the letters of package schedsim.
package purchase
