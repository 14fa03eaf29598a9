//! Strongly connected components of the graph, and short cycles in them.

use std::collections::VecDeque;

use crate::findings::Reason;
use crate::graph::{Edge, Graph, Kind};
use crate::hash::IntMap;

/// Which cycles are of interest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Kinds of edges.
    pub(crate) mask: u8,
    /// The cycle has one of these.
    pub(crate) must: u8,
    /// No two anti-dependencies of the cycle are adjacent.
    pub(crate) is_spaced: bool,
}

/// Maximum of components in which cycles are looked for.
const COMPONENTS_MAX: usize = 500;
/// Maximum of edges per component from which cycles are looked for.
const EDGES_MAX: usize = 12;
/// After this many visited states, no further cycles are looked for.
const VISITS_MAX: usize = 4_000_000;

/// A state is a node, and if anti-dependencies must not be adjacent, whether the last edge was one.
struct States<'a> {
    graph: &'a Graph,
    search: Search,
}

impl States<'_> {
    fn count(&self) -> usize {
        self.graph.nodes() << u32::from(self.search.is_spaced)
    }

    fn node(&self, state: u32) -> u32 {
        state >> u32::from(self.search.is_spaced)
    }

    /// The state after an edge, unless it must not be taken.
    fn after(&self, state: u32, edge: Edge) -> Option<u32> {
        let is_onward = edge.kind == Kind::Onward;
        if !is_onward && self.search.mask & edge.kind.mask() == 0 {
            return None;
        }
        if !self.search.is_spaced {
            return Some(edge.to);
        }
        let was_anti = state & 1;
        match edge.kind {
            Kind::Onward => Some(edge.to << 1 | was_anti),
            Kind::ReadWrite => (was_anti == 0).then_some(edge.to << 1 | 1),
            _ => Some(edge.to << 1),
        }
    }
}

/// Calls `found` with short cycles, each a list of reasons from one transaction to the next.
pub(crate) fn find(graph: &Graph, search: Search, mut found: impl FnMut(&[Reason])) {
    let states = States { graph, search };
    let components = components(&states);
    let mut starts: IntMap<u32, Vec<(u32, usize)>> = IntMap::default();
    for state in 0..states.count() as u32 {
        let component = components[state as usize];
        if component == ALONE {
            continue;
        }
        for at in graph.range(states.node(state)) {
            let edge = graph.edge(at);
            if edge.kind.mask() & search.must != 0
                && states.after(state, edge).is_some_and(|after| components[after as usize] == component)
            {
                let starts = starts.entry(component).or_default();
                if starts.len() < EDGES_MAX {
                    starts.push((state, at));
                }
            }
        }
    }
    let mut starts: Vec<_> = starts.into_iter().collect();
    starts.sort_unstable_by_key(|(component, _)| *component);
    let mut visits = 0;
    for (component, edges) in starts.into_iter().take(COMPONENTS_MAX) {
        let mut shortest: Option<Vec<Reason>> = None;
        for (state, at) in edges {
            if visits > VISITS_MAX && shortest.is_some() {
                break;
            }
            let cycle = close(&states, &components, component, state, at, &mut visits);
            if shortest.as_ref().is_none_or(|shortest| cycle.len() < shortest.len()) {
                shortest = Some(cycle);
            }
        }
        if let Some(cycle) = shortest {
            found(&cycle);
        }
        if visits > VISITS_MAX {
            break;
        }
    }
}

/// The shortest cycle that begins with edge `at` of `state`, in its component.
fn close(
    states: &States<'_>,
    components: &[u32],
    component: u32,
    state: u32,
    at: usize,
    visits: &mut usize,
) -> Vec<Reason> {
    let first = states.graph.edge(at);
    let begin = states.after(state, first).expect("it was taken before");
    let mut parents: IntMap<u32, (u32, usize)> = IntMap::default();
    parents.insert(begin, (state, at));
    let mut queue = VecDeque::from([begin]);
    while let Some(one) = queue.pop_front() {
        *visits += 1;
        if one == state {
            break;
        }
        for at in states.graph.range(states.node(one)) {
            let Some(after) = states.after(one, states.graph.edge(at)) else { continue };
            if components[after as usize] == component && !parents.contains_key(&after) {
                parents.insert(after, (one, at));
                queue.push_back(after);
            }
        }
    }
    let mut edges = Vec::new();
    let mut one = state;
    loop {
        let (parent, at) = parents[&one];
        edges.push((states.node(parent), states.graph.edge(at)));
        one = parent;
        if one == state {
            break;
        }
    }
    edges.reverse();
    reasons(states.graph, &edges)
}

/// Edges of a cycle without its points. A cycle that begins at a point is turned.
fn reasons(graph: &Graph, edges: &[(u32, Edge)]) -> Vec<Reason> {
    let is_transaction = |node: u32| node < graph.transactions;
    let start = edges.iter().position(|(from, _)| is_transaction(*from)).expect("points alone have no cycle");
    let mut reasons: Vec<Reason> = Vec::new();
    for (from, edge) in edges[start..].iter().chain(&edges[..start]) {
        if is_transaction(*from) {
            reasons.push(Reason { from: *from, to: edge.to, kind: edge.kind, key: edge.key });
        } else if let Some(last) = reasons.last_mut() {
            last.to = edge.to;
        }
    }
    reasons
}

/// A state that is in no cycle.
const ALONE: u32 = u32::MAX;

/// The component of each state (Tarjan 1972, without recursion), small numbers for small components.
fn components(states: &States<'_>) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let count = states.count();
    let mut index = vec![UNSEEN; count];
    let mut low = vec![0u32; count];
    let mut component = vec![ALONE; count];
    let mut is_open = vec![false; count];
    let (mut open, mut path): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
    let mut sizes: Vec<u32> = Vec::new();
    let mut next = 0;
    for root in 0..count as u32 {
        if index[root as usize] != UNSEEN {
            continue;
        }
        path.push((root, states.graph.range(states.node(root)).start));
        while let Some((state, at)) = path.last_mut() {
            let (state, here) = (*state, *state as usize);
            if index[here] == UNSEEN {
                (index[here], low[here]) = (next, next);
                next += 1;
                open.push(state);
                is_open[here] = true;
            }
            let end = states.graph.range(states.node(state)).end;
            let mut deeper = None;
            while *at < end {
                let edge = states.graph.edge(*at);
                *at += 1;
                let Some(after) = states.after(state, edge) else { continue };
                let there = after as usize;
                if index[there] == UNSEEN {
                    deeper = Some(after);
                    break;
                }
                if is_open[there] {
                    low[here] = low[here].min(index[there]);
                }
            }
            if let Some(after) = deeper {
                path.push((after, states.graph.range(states.node(after)).start));
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                low[*parent as usize] = low[*parent as usize].min(low[here]);
            }
            if low[here] == index[here] {
                let start = open.iter().rposition(|one| *one == state).expect("it was opened");
                let size = (open.len() - start) as u32;
                for one in open.drain(start..) {
                    is_open[one as usize] = false;
                    if size > 1 {
                        component[one as usize] = sizes.len() as u32;
                    }
                }
                if size > 1 {
                    sizes.push(size);
                }
            }
        }
    }
    let mut order: Vec<u32> = (0..sizes.len() as u32).collect();
    order.sort_by_key(|one| sizes[*one as usize]);
    let mut rank = vec![0u32; sizes.len()];
    order.iter().enumerate().for_each(|(at, one)| rank[*one as usize] = at as u32);
    component.iter_mut().filter(|one| **one != ALONE).for_each(|one| *one = rank[*one as usize]);
    component
}
