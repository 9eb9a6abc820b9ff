//! Memory with the committed PTX loaded into it.

use std::collections::BTreeMap;

use wattlock_engine::crypto::AesSchedule;

use super::ptx::{self, Fault, Memory, Module, Shape};

/// A value of a kernel's parameter.
#[derive(Clone, Copy)]
pub enum Argument {
    Word(u32),
    Long(u64),
}

pub struct Device {
    module: Module,
    variables: Vec<u64>,
    memory: Flat,
}

/// Allocations by address, with nothing between them.
#[derive(Default)]
struct Flat(BTreeMap<u64, Vec<u8>>, u64);

impl Flat {
    fn put(&mut self, bytes: Vec<u8>) -> u64 {
        let address = self.1 + 4096;
        self.1 = (address + bytes.len() as u64).next_multiple_of(256);
        self.0.insert(address, bytes);
        address
    }
}

impl Memory for Flat {
    fn load(&self, address: u64, len: usize) -> Option<u64> {
        let (start, bytes) = self.0.range(..=address).next_back()?;
        let at = (address - start) as usize;
        let mut value = [0; 8];
        value[..len].copy_from_slice(bytes.get(at..at + len)?);
        Some(u64::from_le_bytes(value))
    }

    fn store(&mut self, address: u64, len: usize, value: u64) -> Option<()> {
        let (start, bytes) = self.0.range_mut(..=address).next_back()?;
        let at = (address - start) as usize;
        bytes.get_mut(at..at + len)?.copy_from_slice(&value.to_le_bytes()[..len]);
        Some(())
    }
}

impl Device {
    pub fn new() -> Self {
        let module = ptx::parse(include_str!("../../../kernels/aes.sm_75.ptx")).unwrap();
        // The driver that this file was promised to; see `cuda/module.rs`.
        assert_eq!(module.version, 64);
        let mut memory = Flat::default();
        let variables = module.variables.iter().map(|(_, _, bytes)| memory.put(bytes.clone()));
        let variables = variables.collect();
        Self { module, variables, memory }
    }

    /// Puts round keys where kernels find them, and returns the rounds.
    pub fn set_key(&mut self, keys: &AesSchedule) -> u32 {
        let known =
            self.module.variables.iter().position(|(name, ..)| name == "wattlock_round_keys");
        let variable = self.memory.0.get_mut(&self.variables[known.unwrap()]).unwrap();
        variable.fill(0xbb);
        let bytes = keys.expose().as_flattened();
        let at = variable.len() - bytes.len();
        variable[at..].copy_from_slice(bytes);
        keys.rounds() as u32
    }

    pub fn put(&mut self, bytes: &[u8]) -> u64 {
        self.memory.put(bytes.to_vec())
    }

    pub fn get(&self, address: u64) -> &[u8] {
        &self.memory.0[&address]
    }

    /// The bytes, which are then no longer allocated.
    pub fn take(&mut self, address: u64) -> Vec<u8> {
        self.memory.0.remove(&address).unwrap()
    }

    pub fn launch(
        &mut self,
        name: &str,
        blocks: u32,
        threads: u32,
        shared_bytes: usize,
        arguments: &[Argument],
    ) {
        let ran = self.try_launch(name, blocks, threads, shared_bytes, arguments);
        assert_eq!(ran, Ok(()), "{name}");
    }

    pub fn try_launch(
        &mut self,
        name: &str,
        blocks: u32,
        threads: u32,
        shared_bytes: usize,
        arguments: &[Argument],
    ) -> Result<(), Fault> {
        let kernel = &self.module.kernels[name];
        let mut parameters = Vec::new();
        // Whose work a block does makes no difference.
        let shift = Argument::Word(blocks / 2);
        assert_eq!(kernel.parameters.len(), arguments.len() + 1, "{name}");
        for ((at, len), argument) in kernel.parameters.iter().zip(arguments.iter().chain([&shift]))
        {
            parameters.resize(*at, 0);
            match argument {
                Argument::Word(word) => parameters.extend(word.to_le_bytes()),
                Argument::Long(long) => parameters.extend(long.to_le_bytes()),
            }
            assert_eq!(parameters.len(), at + len, "{name}");
        }
        let shape = Shape { blocks, threads, shared_bytes };
        ptx::launch(kernel, shape, &parameters, &self.variables, &mut self.memory)
    }
}
