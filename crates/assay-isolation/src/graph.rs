//! The graph of dependencies between transactions.
//!
//! Nodes are transactions, and points without a transaction that keep the number of edges linear: "after everything
//! that ended by this instant", "whoever appended to this list after the last read".

/// Why a node is before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    WriteWrite = 1,
    WriteRead = 2,
    ReadWrite = 4,
    Session = 8,
    RealTime = 16,
    /// From a point: the relation is that of the edge into the first point.
    Onward = 32,
}

impl Kind {
    pub(crate) const fn mask(self) -> u8 {
        self as u8
    }
}

/// An edge from a given node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) to: u32,
    /// Index of the key, if it has one.
    pub(crate) key: u32,
    pub(crate) kind: Kind,
}

/// A graph under construction.
pub(crate) struct Builder {
    edges: Vec<(u32, Edge)>,
    transactions: u32,
    nodes: u32,
}

impl Builder {
    pub(crate) fn new(transactions: usize) -> Builder {
        Builder { edges: Vec::new(), transactions: transactions as u32, nodes: transactions as u32 }
    }

    /// A new point.
    pub(crate) fn point(&mut self) -> u32 {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds an edge between different nodes.
    pub(crate) fn edge(&mut self, from: u32, to: u32, kind: Kind, key: u32) {
        debug_assert_ne!(from, to, "a node is not before itself");
        self.edges.push((from, Edge { to, key, kind }));
    }

    pub(crate) fn finish(mut self) -> Graph {
        self.edges.sort_unstable_by_key(|(from, edge)| (*from, edge.to, edge.kind as u8, edge.key));
        self.edges.dedup_by_key(|(from, edge)| (*from, edge.to, edge.kind as u8));
        let mut starts = vec![0u32; self.nodes as usize + 1];
        self.edges.iter().for_each(|(from, _)| starts[*from as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let edges = self.edges.into_iter().map(|(_, edge)| edge).collect();
        Graph { edges, starts, transactions: self.transactions }
    }
}

/// A graph.
pub(crate) struct Graph {
    /// By node and target.
    edges: Vec<Edge>,
    starts: Vec<u32>,
    /// Nodes below this number are transactions.
    pub(crate) transactions: u32,
}

impl Graph {
    pub(crate) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// Edges from a node, by target.
    pub(crate) fn from(&self, node: u32) -> &[Edge] {
        &self.edges[self.range(node)]
    }

    /// Places of a node's edges among all.
    pub(crate) fn range(&self, node: u32) -> std::ops::Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    pub(crate) fn edge(&self, at: usize) -> Edge {
        self.edges[at]
    }

    /// The kinds of the edges between two nodes as a mask.
    pub(crate) fn kinds(&self, from: u32, to: u32) -> u8 {
        self.between(from, to).iter().fold(0, |mask, edge| mask | edge.kind.mask())
    }

    /// Edges between two nodes.
    pub(crate) fn between(&self, from: u32, to: u32) -> &[Edge] {
        let edges = self.from(from);
        let start = edges.partition_point(|edge| edge.to < to);
        let length = edges[start..].partition_point(|edge| edge.to == to);
        &edges[start..start + length]
    }
}
