// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

// A payer whose code accepts any signature, after it has burnt nearly all the gas it is given: whoever shares a
// call or a transaction with it runs dry.
contract GasBurner {
    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        while (gasleft() > 2000) {}
        return this.isValidSignature.selector;
    }
}
